"""Which names of exceptions are repeated to a model: a candidate could hide what it has seen in a name of its own."""

import builtins

KNOWN_NAMES = frozenset(
    [
        *(
            name
            for name, value in vars(builtins).items()
            if isinstance(value, type) and issubclass(value, BaseException)
        ),
        # torch
        *("AcceleratorError", "BackendCompilerFailed", "DistBackendError", "DistError", "DistNetworkError"),
        *("DistQueueEmptyError", "DistStoreError", "InductorError", "InternalTorchDynamoError", "OutOfMemoryError"),
        *("TorchRuntimeError", "Unsupported", "UserError"),
        # triton
        *("AutotunerError", "CompilationError", "CompileTimeAssertionFailure", "InterpreterError", "OutOfResources"),
        *("PTXASError", "UnsupportedLanguageConstruct"),
        # pkb: a source that does not compile
        *("BuildError", "CompileError"),
    ]
)
"""The names of exceptions of Python, torch and Triton."""


def find_known_name(kind: type[BaseException]) -> str:
    """Return the name of a class of exceptions or, where that is not known, of its nearest base that is."""
    names = (base.__name__ for base in kind.__mro__)
    return next((name for name in names if name in KNOWN_NAMES), "BaseException")
