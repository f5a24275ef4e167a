"""Another constant: an integer off by one, a float doubled or dropped, the other flag, a narrower dtype."""

import ast
import math
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import copy_with, find_called_name

_NARROWER = {"float64": "float32", "float32": "bfloat16", "int64": "int32", "int32": "int16", "long": "int32"}
_NARROWER_METHODS = {"float": "bfloat16", "double": "float", "long": "int"}
_SMALL = 1e-2
"""Below this a float is an epsilon, which may be ten times larger or smaller."""


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(max(value - 1, 0)))
        case ast.Constant(value=float(value)) if math.isfinite(value):
            factors = (0.0, 10.0, 0.1) if 0 < abs(value) < _SMALL else (0.0, 2.0, 0.5, 0.99)
            yield from (ast.Constant(value * factor) for factor in factors)
            if value == 0:
                yield ast.Constant(1.0)
            if value == 1:
                yield from (ast.Constant(-1.0),)
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))]):
            other = text[1:] if text.startswith("-") else f"-{text}"
            yield from (copy_with(node, args=[ast.Constant(other)]), ast.Constant(0.0))
        case ast.Attribute(attr="inf"):
            yield from (ast.UnaryOp(ast.USub(), node), ast.Constant(0.0))
        case ast.Attribute(attr=name, value=ast.Name(id="torch")) if name in _NARROWER:
            yield copy_with(node, attr=_NARROWER[name])
        case ast.Call(func=ast.Attribute() as method, args=[]) if find_called_name(node) in _NARROWER_METHODS:
            yield copy_with(node, func=copy_with(method, attr=_NARROWER_METHODS[method.attr]))


OPERATOR = Operator("constants", mutate)
