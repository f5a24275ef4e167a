"""A step uses an earlier version of a variable: before it was normalised, masked, rotated or summed."""

import ast
import copy
from collections.abc import Iterator
from typing import Any

from pkb.tools.mutation.change import Mutation, Operator
from pkb.tools.mutation.syntax import copy_with

_MOST_STEPS = 3
"""The most later steps that may use the earlier version, one at a time."""


def mutate(node: ast.AST) -> Iterator[Mutation]:
    if isinstance(node, ast.FunctionDef | ast.For | ast.If):
        yield from _mutate_body(node, node.body)


def _mutate_body(node: ast.AST, body: list[ast.stmt]) -> Iterator[Mutation]:
    for k, step in enumerate(body):
        for name in sorted(_list_assigned(step) & _list_read(step)):
            users = [j for j in range(k + 1, len(body)) if name in _list_read(body[j])][:_MOST_STEPS]
            before = f"{name}_before"
            for j in users:
                later = _Rename(name, before).visit(copy.deepcopy(body[j]))
                keep = ast.parse(f"{before} = {name}").body
                steps = [*body[:k], *keep, *body[k:j], later, *body[j + 1 :]]
                text = f"{_first_line(body[j])} with {name} as before {_first_line(step)}"
                yield Mutation(copy_with(node, body=steps), text)


class _Rename(ast.NodeTransformer):
    """Renames a variable where it is read."""

    def __init__(self, name: str, other: str):
        self.name, self.other = name, other

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id == self.name and isinstance(node.ctx, ast.Load):
            return ast.Name(self.other, ast.Load())
        return node


def _list_assigned(node: ast.stmt) -> set[str]:
    """Return the variables that become another object; one that is changed in place has no earlier version."""
    in_place = {id(one.target) for one in ast.walk(node) if isinstance(one, ast.AugAssign)}
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return {name.id for name in names if id(name) not in in_place}


def _list_read(node: ast.stmt) -> set[str]:
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    return {one.id for one in names if isinstance(one.ctx, ast.Load)}


def _first_line(node: ast.stmt) -> str:
    return ast.unparse(node).split("\n")[0][:60].strip()


OPERATOR = Operator("versions", mutate)
