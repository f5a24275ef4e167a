"""A branch, a statement or a turn of a loop is skipped; a branch is always taken, a statement runs twice."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Mutation, Operator
from pkb.tools.mutation.syntax import copy_with, find_called_name

_REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter_tensor")


def mutate(node: ast.AST) -> Iterator[ast.AST | Mutation]:
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            yield Mutation(copy_with(node, test=ast.Constant(False)), f"if {ast.unparse(test)}: skipped")
            yield Mutation(copy_with(node, test=ast.Constant(True)), f"if {ast.unparse(test)}: always")
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self")), args=[first, *_]):
            # A layer or an own step of a model.
            yield first
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case ast.For(iter=turns):
            for text, cut in (("without the first turn", "[1:]"), ("without the last turn", "[:-1]")):
                fewer = ast.parse(f"list({ast.unparse(turns)}){cut}", mode="eval").body
                yield Mutation(copy_with(node, iter=fewer), f"for {ast.unparse(node.target)} {text}")
        case ast.comprehension(ifs=[condition, *rest]):
            yield Mutation(copy_with(node, ifs=rest), f"without if {ast.unparse(condition)}")
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
            yield ast.Pass()
            if isinstance(node, ast.AugAssign) or _changes_in_place(node):
                yield Mutation(ast.If(ast.Constant(True), [node, node], []), f"{ast.unparse(node)} twice")
        case ast.Assign(targets=[ast.Subscript()]):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _reads(value, name):
            yield ast.Pass()
        case ast.Break() | ast.Continue():
            yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
            yield ast.Pass()


def _changes_in_place(node: ast.AST) -> bool:
    name = find_called_name(node.value) if isinstance(node, ast.Expr) else ""
    return name in _REDUCTIONS or (name.endswith("_") and not name.endswith("__"))


def _reads(value: ast.expr, name: str) -> bool:
    """Whether an assignment changes a variable: without it, the earlier value would be used."""
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(value))


OPERATOR = Operator("branches", mutate)
