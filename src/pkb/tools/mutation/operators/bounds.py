"""An index or a bound is off by one, or a bound of a slice or of a range is missing."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import add, copy_with, find_called_name

_LENGTHS = {"narrow", "view_chunk"}


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Slice(lower=lower, upper=upper, step=step):
            for name, bound in (("lower", lower), ("upper", upper)):
                if bound is not None:
                    yield from (copy_with(node, **{name: moved}) for moved in (add(bound, 1), add(bound, -1), None))
            if step is not None:
                yield copy_with(node, step=None)
        case ast.Subscript(slice=index) if not isinstance(index, ast.Slice | ast.Tuple | ast.Compare):
            yield from (copy_with(node, slice=add(index, step)) for step in (1, -1))
        case ast.Subscript(slice=ast.Tuple(elts=elements) as index):
            for k, element in enumerate(elements):
                if not isinstance(element, ast.Slice | ast.Compare) and not _is_special(element):
                    moved = [[*elements[:k], add(element, step), *elements[k + 1 :]] for step in (1, -1)]
                    yield from (copy_with(node, slice=copy_with(index, elts=one)) for one in moved)
        case ast.Call() if find_called_name(node) == "range":
            yield from _move_range(node)


def _move_range(node: ast.Call) -> Iterator[ast.AST]:
    for k, bound in enumerate(node.args[:2]):
        for step in (1, -1):
            yield copy_with(node, args=[*node.args[:k], add(bound, step), *node.args[k + 1 :]])
    if len(node.args) == 1:
        yield copy_with(node, args=[ast.Constant(1), node.args[0]])


def _is_special(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or node.value is Ellipsis)


OPERATOR = Operator("bounds", mutate)
