"""Another order: steps that work on the same variable, directions of a sort, keywords, results and arguments."""

import ast
from collections.abc import Iterator
from itertools import pairwise

from pkb.tools.mutation.change import Mutation, Operator
from pkb.tools.mutation.syntax import copy_with, find_called_name, list_changed

_DIRECTED = {"sort": "descending", "argsort": "descending", "topk": "largest"}
_PAIRS = (
    ("output_split_sizes", "input_split_sizes"),
    ("src", "dst"),
    ("q", "k"),
)


def mutate(node: ast.AST) -> Iterator[ast.AST | Mutation]:
    if isinstance(node, ast.Call):
        yield from _mutate_call(node)
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store | ast.Load) and len(node.elts) > 1:
        yield from _exchange_elements(node)
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if isinstance(body, list):
            yield from _exchange_steps(node, field, body)


def _mutate_call(node: ast.Call) -> Iterator[ast.AST]:
    name = find_called_name(node)
    if flag := _DIRECTED.get(name):
        yield _set_flag(node, flag)
    names = [keyword.arg for keyword in node.keywords]
    for one, other in _PAIRS:
        if one in names and other in names:
            exchanged = {one: other, other: one}
            keywords = [copy_with(word, arg=exchanged.get(word.arg or "", word.arg)) for word in node.keywords]
            yield copy_with(node, keywords=keywords)
    for k, (first, second) in enumerate(pairwise(node.args)):
        if isinstance(first, ast.Name) and isinstance(second, ast.Name):
            yield copy_with(node, args=[*node.args[:k], second, first, *node.args[k + 2 :]])


def _set_flag(node: ast.Call, flag: str) -> ast.Call:
    present = next((word for word in node.keywords if word.arg == flag), None)
    usual = flag == "largest"
    value = not present.value.value if present and isinstance(present.value, ast.Constant) else not usual
    rest = [word for word in node.keywords if word.arg != flag]
    return copy_with(node, keywords=[*rest, ast.keyword(flag, ast.Constant(value))])


def _exchange_elements(node: ast.Tuple) -> Iterator[ast.AST]:
    for k in range(len(node.elts) - 1):
        one, other = node.elts[k : k + 2]
        if isinstance(one, ast.Name) and isinstance(other, ast.Name):
            yield copy_with(node, elts=[*node.elts[:k], other, one, *node.elts[k + 2 :]])


def _exchange_steps(node: ast.AST, field: str, body: list[ast.stmt]) -> Iterator[Mutation]:
    """Yield the node with two neighbouring steps exchanged, where both change the same variable."""
    for k, (one, other) in enumerate(pairwise(body)):
        if shared := list_changed(one) & list_changed(other):
            steps = [*body[:k], other, one, *body[k + 2 :]]
            text = f"{_first_line(other)} before {_first_line(one)} ({', '.join(sorted(shared))})"
            yield Mutation(copy_with(node, **{field: steps}), text)


def _first_line(node: ast.stmt) -> str:
    return ast.unparse(node).split("\n")[0][:50].strip()


OPERATOR = Operator("orders", mutate)
