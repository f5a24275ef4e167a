"""A dtype in the source is a narrower one."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import copy_with, find_called_name

_NARROWER = {"float64": "float32", "float32": "bfloat16", "int64": "int32", "int32": "int16", "long": "int32"}


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Attribute) and node.attr in _NARROWER and ast.unparse(node.value) == "torch":
        yield copy_with(node, attr=_NARROWER[node.attr])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        narrower = {"float": "bfloat16", "double": "float", "long": "int"}.get(find_called_name(node))
        if narrower:
            yield copy_with(node, func=copy_with(node.func, attr=narrower))


OPERATOR = Operator("narrowing", mutate)
