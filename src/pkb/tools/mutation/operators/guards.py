"""A mask, a clamp or another guard is dropped, or there is one too many; the sides of a choice are exchanged."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import copy_with, find_called_name, find_receiver, list_own_arguments, rename_called

_GUARDS = {
    *("clamp", "clamp_", "clamp_min", "clamp_max", "clamp_min_", "clamp_max_", "clip", "relu", "nan_to_num"),
    *("masked_fill", "masked_fill_", "tril", "triu", "where", "pad", "dropout", "clone"),
}
_CHOICES = ("min", "max", "maximum", "minimum")
_MASKS = {"mask", "attn_mask", "is_causal", "causal", "min", "max", "eps", "ignore_index", "weight", "bias", "input"}
_OPPOSITE = {"tril": "triu", "triu": "tril", "clamp_min": "clamp_max", "clamp_max": "clamp_min"}

_EPSILON = 1e-4
"""The least value that a superfluous guard allows."""
_MAGNITUDES = {"amax", "norm", "vector_norm", "abs", "sqrt", "square", "var", "std"}


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not isinstance(node.right, ast.Constant):
        yield copy_with(node, right=_set_least(node.right))
    if not isinstance(node, ast.Call):
        return
    if find_called_name(node) in _MAGNITUDES:
        yield _set_least(node)
    yield from _drop_guards(node)


def _set_least(node: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(node, "clamp_min", ast.Load()), [ast.Constant(_EPSILON)], [])


def _drop_guards(node: ast.Call) -> Iterator[ast.AST]:
    name, receiver, own = find_called_name(node), find_receiver(node), list_own_arguments(node)
    if name == "where" and len(node.args) == 3:
        condition, one, other = node.args
        yield from (one, other, copy_with(node, args=[condition, other, one]))
    elif name in _GUARDS and receiver is not None:
        yield receiver
    elif name in _CHOICES and len(node.args) == 2 and receiver is node.args[0]:
        yield from node.args
    elif name in _CHOICES[2:] and receiver is not None and own:
        yield from (receiver, own[0])
    if name in _OPPOSITE:
        yield rename_called(node, _OPPOSITE[name])
    for k, keyword in enumerate(node.keywords):
        if keyword.arg in _MASKS:
            yield copy_with(node, keywords=node.keywords[:k] + node.keywords[k + 1 :])


OPERATOR = Operator("guards", mutate)
