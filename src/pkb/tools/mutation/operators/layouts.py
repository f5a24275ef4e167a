"""Rows and columns are exchanged: a transpose is dropped or added, dims of a view or a permutation change places."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import (
    copy_with,
    find_called_name,
    find_receiver,
    list_own_arguments,
    replace_own_arguments,
)

_DROPPABLE = {
    *("transpose", "t", "permute", "mT", "T", "flip", "roll", "movedim", "swapaxes", "conj"),
    *("repeat_interleave", "fliplr", "rot90"),
}
_SHAPES = {"view", "reshape", "permute", "unflatten", "expand", "new_empty", "new_zeros", "empty", "zeros", "repeat"}
_PRODUCTS = {"matmul", "mm", "bmm", "baddbmm", "addmm"}
_PIECES = {"cat", "stack", "concat"}


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Attribute(value=value, attr="T" | "mT" | "H" | "mH"):
            yield value
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            yield copy_with(node, left=ast.Attribute(left, "mT", ast.Load()))
            yield copy_with(node, right=ast.Attribute(right, "mT", ast.Load()))
        case ast.Call():
            yield from _mutate_call(node, find_called_name(node))


def _mutate_call(node: ast.Call, name: str) -> Iterator[ast.AST]:
    receiver, own = find_receiver(node), list_own_arguments(node)
    if name in _DROPPABLE and receiver is not None:
        yield receiver
    if name in _SHAPES:
        yield from (replace_own_arguments(node, order) for order in _list_exchanges(own))
        if len(own) == 1 and isinstance(own[0], ast.Tuple):
            orders = _list_exchanges(own[0].elts)
            yield from (replace_own_arguments(node, [copy_with(own[0], elts=order)]) for order in orders)
    if name in _PRODUCTS:
        for k, factor in enumerate(node.args):
            yield copy_with(node, args=[*node.args[:k], ast.Attribute(factor, "mT", ast.Load()), *node.args[k + 1 :]])
    if name in _PIECES and isinstance(receiver, ast.List | ast.Tuple):
        for order in _list_exchanges(receiver.elts):
            yield copy_with(node, args=[copy_with(receiver, elts=order), *node.args[1:]])


def _list_exchanges(values: list[ast.expr]) -> list[list[ast.expr]]:
    """Return the lists in which two neighbours have changed places."""
    pairs = range(len(values) - 1)
    return [[*values[:k], values[k + 1], values[k], *values[k + 2 :]] for k in pairs]


OPERATOR = Operator("layouts", mutate)
