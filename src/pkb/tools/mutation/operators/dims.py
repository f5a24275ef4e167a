"""Another dim: of a reduction, a softmax, a concatenation, a chunk, a gather."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import (
    copy_with,
    find_called_name,
    list_own_arguments,
    make_integer,
    read_integer,
    replace_own_arguments,
)

_KEYWORDS = ("dim", "axis", "start_dim", "end_dim", "dim0", "dim1")
_FIRST = {
    *("sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "prod", "any", "all", "logsumexp", "norm"),
    *("cumsum", "cumprod", "softmax", "log_softmax", "unsqueeze", "squeeze", "size", "cat", "stack", "concat"),
    *("gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "index_select", "index_add", "index_add_"),
    *("narrow", "select", "unbind", "flatten", "unflatten", "sort", "argsort", "var", "std"),
}
"""Functions whose first argument besides the tensor is a dim."""
_SECOND = {"chunk", "split", "tensor_split", "roll", "repeat_interleave", "topk", "diff"}
"""Functions whose second argument besides the tensor is a dim."""


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.keyword) and node.arg in _KEYWORDS:
        yield from (copy_with(node, value=dim) for dim in _list_others(node.value))
        return
    name = find_called_name(node)
    place = 0 if name in _FIRST else 1 if name in _SECOND else None
    if place is None or not isinstance(node, ast.Call) or len(own := list_own_arguments(node)) <= place:
        return
    for dim in _list_others(own[place]):
        yield replace_own_arguments(node, [*own[:place], dim, *own[place + 1 :]])


def _list_others(node: ast.expr) -> list[ast.expr]:
    """Return the neighbours of a dim; for a tuple of dims, the tuple without one of them."""
    value = read_integer(node)
    if value is not None:
        # -1 and 0 are neighbours as well: the last dim and the first.
        return [make_integer(other) for other in (value - 1, value + 1)]
    if isinstance(node, ast.Tuple) and len(node.elts) > 1:
        return [copy_with(node, elts=node.elts[:k] + node.elts[k + 1 :]) for k in range(len(node.elts))]
    return []


OPERATOR = Operator("dims", mutate)
