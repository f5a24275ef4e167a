"""An argument of the solution is ignored, or a keyword of a call is left out: the usual value is in its place."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Mutation, Operator
from pkb.tools.mutation.syntax import copy_with, read_integer

_LEFT_TO_OTHERS = ("group", "dtype", "device", "strict", "out", "async_op", "pin_memory", "requires_grad")
"""Keywords that other operators leave out, or whose usual value means the same."""
_ENTRIES = ("solution", "forward")
_BY_TYPE = {
    "int": ("0", "1", "-1"),
    "float": ("0.0", "1.0"),
    "bool": ("True", "False"),
    "torch.Tensor": ("torch.zeros_like({0})", "torch.ones_like({0})"),
}


def mutate(node: ast.AST) -> Iterator[ast.AST | Mutation]:
    if isinstance(node, ast.FunctionDef) and node.name in _ENTRIES:
        for name, value in _list_replacements(node.args):
            ignored = ast.parse(f"{name} = {value}").body
            yield Mutation(copy_with(node, body=[*_find_docstring(node), *ignored, *node.body]), f"{name} = {value}")
    if isinstance(node, ast.Call):
        for k, keyword in enumerate(node.keywords):
            if keyword.arg not in _LEFT_TO_OTHERS and not _is_usual(keyword):
                yield copy_with(node, keywords=node.keywords[:k] + node.keywords[k + 1 :])


def _list_replacements(arguments: ast.arguments) -> list[tuple[str, str]]:
    """Return names of arguments, each with an expression for a value that it may usually have."""
    usual: dict[str, list[str]] = {}
    named = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    for argument, default in zip(named, arguments.defaults, strict=True):
        if argument.annotation and "ProcessGroup" in ast.unparse(argument.annotation):
            continue
        usual[argument.arg] = [ast.unparse(default)]
    for argument in arguments.args:
        kind = ast.unparse(argument.annotation).split(" | ")[0] if argument.annotation else ""
        usual.setdefault(argument.arg, []).extend(value.format(argument.arg) for value in _BY_TYPE.get(kind, ()))
    return [(name, value) for name, values in usual.items() for value in dict.fromkeys(values)]


def _is_usual(keyword: ast.keyword) -> bool:
    return keyword.arg == "dim" and read_integer(keyword.value) == -1


def _find_docstring(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[:1] if ast.get_docstring(node) else []


OPERATOR = Operator("arguments", mutate)
