"""A term or factor is dropped or doubled, a sign or an operator is another, operands are exchanged."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import copy_with, read_integer

_OTHERS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
}
_DROPPABLE = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr)
_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if not _is_text(left):
            yield from (copy_with(node, op=other()) for other in _OTHERS.get(type(op), ()))
            if isinstance(op, _DROPPABLE):
                yield left
            if isinstance(op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
                yield right
            if isinstance(op, ast.Sub):
                yield ast.UnaryOp(ast.USub(), right)
            if isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.Div):
                yield ast.BinOp(node, op, right)
            if isinstance(op, _ORDERED):
                yield copy_with(node, left=right, right=left)
        case ast.UnaryOp(op=ast.USub() | ast.Invert() | ast.Not(), operand=operand) if read_integer(node) is None:
            yield operand
        case ast.AugAssign(target=target, op=op, value=value):
            yield from (copy_with(node, op=other()) for other in _OTHERS.get(type(op), ()))
            yield ast.Assign([target], value, lineno=0)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


OPERATOR = Operator("terms", mutate)
