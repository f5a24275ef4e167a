"""Another constant: an integer off by one, a float doubled, halved, dropped or with another sign, the other flag."""

import ast
import math
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import copy_with

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


OPERATOR = Operator("constants", mutate)
