"""A comparison includes its bound or leaves it out, looks the other way, or is negated; a condition loses a part."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import copy_with, find_called_name, rename_called

_OTHERS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_NAMES = {
    "lt": ("le", "gt"),
    "le": ("lt", "ge"),
    "gt": ("ge", "lt"),
    "ge": ("gt", "le"),
    "eq": ("ne",),
    "ne": ("eq",),
    "logical_and": ("logical_or",),
    "logical_or": ("logical_and",),
}


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=[op]):
            yield from (copy_with(node, ops=[other()]) for other in _OTHERS[type(op)])
        case ast.BoolOp(op=op, values=values):
            yield copy_with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            yield from (_drop(node, k) for k in range(len(values)))
        case ast.Call():
            yield from (rename_called(node, name) for name in _NAMES.get(find_called_name(node), ()))


def _drop(node: ast.BoolOp, place: int) -> ast.expr:
    kept = [value for k, value in enumerate(node.values) if k != place]
    return kept[0] if len(kept) == 1 else copy_with(node, values=kept)


OPERATOR = Operator("comparisons", mutate)
