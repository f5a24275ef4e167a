"""The neighbour's rank in place of the own, a world with one rank more or less, another group."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import add, copy_with, find_called_name

_WORDS = ("rank", "world", "peer", "root")


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and any(word in node.id for word in _WORDS):
        yield add(node, 1)
        yield add(node, -1)
    elif find_called_name(node) in ("get_rank", "get_world_size") and isinstance(node, ast.Call):
        yield add(node, 1)
        yield add(node, -1)
        if find_called_name(node) == "get_rank":
            world = copy_with(node, func=copy_with(node.func, attr="get_world_size"))
            yield from (ast.BinOp(add(node, step), ast.Mod(), world) for step in (1, -1))
            yield ast.BinOp(ast.BinOp(world, ast.Sub(), ast.Constant(1)), ast.Sub(), node)


OPERATOR = Operator("ranks", mutate)
