"""What the judge and the ranks agree on about extensions that a candidate compiles with torch."""

from pkb.base.python_source import find_imports, find_strings

MODULE = "torch.utils.cpp_extension"
"""The module whose `load` and `load_inline` compile extensions."""
SLOW_IMPORTS = ("setuptools.command.build_ext", "torch.utils.hipify.hipify_python")
"""Modules that `MODULE` imports, for a good part of a second. Unlike `MODULE`, they do not look for GPUs, so that a
process that must not touch a GPU can import them."""
FINISHED = "finished"
"""The file next to a library that has been compiled to its end."""


def may_compile(source: bytes) -> bool:
    """Return whether a candidate's source may call torch's `load` or `load_inline`."""
    return MODULE in find_imports(source) or MODULE in find_strings(source)
