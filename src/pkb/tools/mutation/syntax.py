"""Small helpers to read and to copy nodes of a syntax tree."""

import ast
import copy
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)


def copy_with(node: Node, **changes: Any) -> Node:
    """Return a copy of a node with some of its fields replaced; the other fields are shared."""
    new = copy.copy(node)
    for name, value in changes.items():
        setattr(new, name, value)
    return new


def find_called_name(node: ast.AST) -> str:
    """Return the last name of what is called: `sum` for `x.sum(...)` and `torch.sum(...)`; empty for no call."""
    if not isinstance(node, ast.Call):
        return ""
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def find_receiver(node: ast.AST) -> ast.expr | None:
    """Return the tensor that a call works on: `x` of `x.sum(1)`, or the first argument of `torch.sum(x, 1)`."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and not is_module(node.func.value):
        return node.func.value
    return node.args[0] if node.args else None


def list_own_arguments(node: ast.Call) -> list[ast.expr]:
    """Return the positional arguments besides the receiver."""
    is_method = isinstance(node.func, ast.Attribute) and not is_module(node.func.value)
    return node.args if is_method else node.args[1:]


def replace_own_arguments(node: ast.Call, arguments: list[ast.expr]) -> ast.Call:
    """Return a call with other positional arguments besides the receiver."""
    kept = node.args[: len(node.args) - len(list_own_arguments(node))]
    return copy_with(node, args=[*kept, *arguments])


def is_module(node: ast.expr) -> bool:
    """Whether an expression names a module, as far as references use them: torch, F, dist, math, torch.nn ..."""
    return ast.unparse(node) in _MODULES


_MODULES = {
    *("torch", "F", "nn", "dist", "math", "np", "torch.distributed", "torch.nn", "torch.nn.functional", "torch.fft"),
    *("torch.linalg", "self", "functional", "torch.special", "c10d", "itertools"),
}


def read_integer(node: ast.AST) -> int | None:
    """Return the value of an integer in the source, a negative one included; None for everything else."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if not isinstance(value, bool):
            return -value
    return None


def make_integer(value: int) -> ast.expr:
    number = ast.Constant(abs(value))
    return number if value >= 0 else ast.UnaryOp(ast.USub(), number)


def add(node: ast.expr, step: int) -> ast.expr:
    """Return an expression for a node plus a step; an integer in the source becomes another integer."""
    if (value := read_integer(node)) is not None:
        return make_integer(value + step)
    return ast.BinOp(node, ast.Add() if step > 0 else ast.Sub(), ast.Constant(abs(step)))


def rename_called(node: ast.Call, name: str) -> ast.Call:
    """Return a call of another function or method of the same module or object."""
    if isinstance(node.func, ast.Attribute):
        return copy_with(node, func=copy_with(node.func, attr=name))
    return copy_with(node, func=ast.Name(name, ast.Load()))


def list_changed(node: ast.stmt) -> set[str]:
    """Return the variables that a step assigns, stores into, or changes by a method whose name ends with `_`."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    stored = {
        one.value.id
        for one in ast.walk(node)
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and isinstance(one.value, ast.Name)
    }
    called = {
        one.func.value.id
        for one in ast.walk(node)
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and isinstance(one.func.value, ast.Name)
        and one.func.attr.endswith("_")
    }
    return names | stored | called
