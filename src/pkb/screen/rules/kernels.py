"""Kernels that are there for show, and what runs in their place."""

import ast
from collections.abc import Iterator

from pkb.screen.facts import COMPILERS, Facts, Hit
from pkb.screen.rule import ANY, BOTH, SCRATCH, Found, rule
from pkb.screen.rules.scratch import is_collective, is_product

_KERNELS_OF_OTHERS = ("torch.utils.cpp_extension.load", "pkb.cuda_lib", "cuda", "cupy")
_EVERYTHING = {"Exception", "BaseException", "RuntimeError"}


@rule("let the error be seen: a kernel that cannot run is not a solution", warn=ANY, reject=SCRATCH)
def falls_back(facts: Facts) -> Iterator[Found]:
    """takes over when the kernel fails"""
    for node in facts.tries():
        for use in facts.uses_in(node.handlers):
            if is_collective(use.name) or is_product(use.name):
                line = use.line if use.node in ast.walk(node) else node.handlers[0].lineno
                yield Hit(line, "the operator @" if use.name == "operator.matmul" else use.name)


@rule("catch only what you expect, or raise again", warn=BOTH)
def swallows_errors(facts: Facts) -> Iterator[Found]:
    """hides a kernel's failure"""
    for node in facts.tries():
        for handler in node.handlers:
            kinds = (
                {name.id for name in ast.walk(handler.type) if isinstance(name, ast.Name)} if handler.type else set()
            )
            quiet = not any(isinstance(part, ast.Raise) for part in ast.walk(handler))
            if quiet and (not handler.type or kinds & _EVERYTHING):
                yield Hit(handler.lineno, "this except")


@rule("launch it in the call, or remove it", warn=BOTH)
def never_launched(facts: Facts) -> Iterator[Found]:
    """is never launched by the call"""
    for kernel in facts.kernels():
        if kernel not in facts.hot:
            yield Hit(kernel.lineno, f"the kernel {getattr(kernel, 'name', 'lambda')}")
    for source in facts.sources:
        compiled = source.use
        called = any(use.name.startswith(f"{compiled.name}()") for use in facts.uses(compiled.name, hot=True))
        if not facts.lives(compiled, hot=True) and not called:
            yield Hit(compiled.line, f"what {compiled.name} compiles")


@rule("launch a kernel of that kind, or judge it as --backend torch", warn=ANY, reject=SCRATCH)
def no_kernel(facts: Facts) -> Iterator[Found]:
    """has no kernel of the backend that it claims"""
    if facts.backend == "torch" or any(kernel in facts.hot for kernel in facts.kernels()):
        return
    imported = [use for use in facts.launches() if not use.name.startswith("?")]
    if not imported and not [use for use in facts.uses(*COMPILERS, *_KERNELS_OF_OTHERS) if use.call]:
        yield Hit(1, "the file")
