"""Kernels that are never launched, and code that runs in their place."""

import ast
from collections.abc import Iterator

from pkb.backends import list_compilers
from pkb.screen.facts import Facts, Hit
from pkb.screen.rule import ANY, BOTH, SCRATCH, Spot, rule
from pkb.screen.rules.scratch import is_collective, is_product

_KERNEL_LIBRARIES = ("torch.utils.cpp_extension.load", "pkb.cuda_lib", "cuda", "cupy")
_BROAD_ERRORS = {"Exception", "BaseException", "RuntimeError"}


@rule("let the error be seen: a kernel that cannot run is not a solution", warn=ANY, reject=SCRATCH)
def falls_back(facts: Facts) -> Iterator[Spot]:
    """takes over when the kernel fails"""
    for node in facts.tries:
        for use in facts.find_uses_in(node.handlers):
            if is_collective(use.name) or is_product(use.name):
                line = use.line if use.node in ast.walk(node) else node.handlers[0].lineno
                yield Hit(line, "the operator @" if use.name == "operator.matmul" else use.name)


@rule("catch only what you expect, or raise again", warn=BOTH)
def swallows_errors(facts: Facts) -> Iterator[Spot]:
    """hides a kernel's failure"""
    for node in facts.tries:
        for handler in node.handlers:
            caught = ast.walk(handler.type or ast.Name("BaseException"))
            is_broad = any(isinstance(part, ast.Name) and part.id in _BROAD_ERRORS for part in caught)
            if is_broad and not any(isinstance(part, ast.Raise) for part in ast.walk(handler)):
                yield Hit(handler.lineno, "this except")


@rule("launch it in the call, or remove it", warn=BOTH)
def never_launched(facts: Facts) -> Iterator[Spot]:
    """is never launched by the call"""
    for kernel in facts.kernels:
        if kernel not in facts.hot:
            yield Hit(kernel.lineno, f"the kernel {getattr(kernel, 'name', 'lambda')}")
    for source in facts.sources:
        compiled = source.use
        called = any(use.name.startswith(f"{compiled.name}()") for use in facts.find_uses(compiled.name, hot=True))
        if not facts.is_live(compiled, hot=True) and not called:
            yield Hit(compiled.line, f"what {compiled.name} compiles")


@rule("launch a kernel of that kind, or judge it as --backend torch", warn=ANY, reject=SCRATCH)
def no_kernel(facts: Facts) -> Iterator[Spot]:
    """has no kernel of the backend that it claims"""
    if not facts.backend.has_kernels or any(kernel in facts.hot for kernel in facts.kernels):
        return
    # A launch of something unknown is of a kernel that the file registers, if it registers one: the judge will see.
    launches = [use for use in facts.launches if facts.has_registered_kernels or not use.name.startswith("?")]
    if not launches and not [use for use in facts.find_uses(*list_compilers(), *_KERNEL_LIBRARIES) if use.call]:
        yield Hit(1, "the file")
