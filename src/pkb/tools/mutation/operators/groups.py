"""A collective runs among all ranks in place of a group of them."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import copy_with, find_called_name

_QUESTIONS = ("get_rank", "get_world_size")


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call):
        return
    for k, keyword in enumerate(node.keywords):
        if keyword.arg == "group":
            yield copy_with(node, keywords=node.keywords[:k] + node.keywords[k + 1 :])
    if find_called_name(node) in _QUESTIONS and node.args:
        yield copy_with(node, args=[])


# Elsewhere all groups are the whole world.
OPERATOR = Operator("groups", mutate, needs="subgroup")
