"""Expressions that are constants, folded: concatenation, formats, look-ups, comprehensions."""

import ast
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

from pkb.screen import folding
from pkb.screen.fixpoint import TooComplex
from pkb.screen.folding import CannotFold
from pkb.screen.scopes import Assigned, Scope
from pkb.screen.values import MOST_VALUES, SOME_TENSOR, UNKNOWN, Dotted, Folded, Value

_MOST_MADE = 1 << 24
"""Characters in all constants that were put together."""
Combine = Callable[[list[Any]], Any]


class Constants:
    def __init__(self, values: Callable[[ast.expr, Scope], list[Value]]):
        self._values = values
        self._made = 0

    def expression(self, node: ast.expr, scope: Scope) -> list[Value]:
        """The value of an operator, a format or a display."""
        match node:
            case ast.BinOp():
                return self._operate(node.op, node.left, node.right, scope)
            case ast.Compare(ops=[op], comparators=[right]):
                return self._operate(op, node.left, right, scope)
            case ast.UnaryOp(op=ast.USub()):
                return self.fold([node.operand], scope, lambda args: folding.operate(ast.Sub(), 0, args[0]))
            case ast.UnaryOp(op=ast.Not()):
                return self.fold([node.operand], scope, lambda args: not args[0])
            case ast.JoinedStr():
                return self.fold(node.values, scope, "".join)
            case ast.FormattedValue():
                spec = [node.format_spec] if node.format_spec else []
                conversion = node.conversion
                return self.fold(
                    [node.value, *spec], scope, lambda args: folding.formatted(args[0], conversion, "".join(args[1:]))
                )
        return self._display(node, scope)

    def _display(self, node: ast.expr, scope: Scope) -> list[Value]:
        match node:
            case ast.List() | ast.Tuple() | ast.Set():
                return self.fold(node.elts, scope, list)
            case ast.Dict():
                keys = [key for key in node.keys if key]
                half = len(keys)
                if half < len(node.values):
                    return [UNKNOWN]
                return self.fold(
                    [*keys, *node.values], scope, lambda args: dict(zip(args[:half], args[half:], strict=True))
                )
            case ast.ListComp() | ast.GeneratorExp():
                return self._comprehension(node, scope)
        return [UNKNOWN]

    def fold(self, parts: list[ast.expr], scope: Scope, combine: Combine) -> list[Value]:
        """What results from every choice of constant parts; UNKNOWN where a part is no constant."""
        choices = list(islice(product(*(self._values(part, scope) for part in parts)), MOST_VALUES + 1))
        found = [_combined(chosen, combine) for chosen in choices[:MOST_VALUES]]
        self._made += sum(folding.size(value.value) for value in found if isinstance(value, Folded))
        if self._made > _MOST_MADE:
            raise TooComplex
        return found if 0 < len(choices) <= MOST_VALUES else [*found, UNKNOWN]

    def map(self, function: ast.expr, over: ast.expr, scope: Scope) -> list[Value]:
        names = [v.name for v in self._values(function, scope) if isinstance(v, Dotted)]
        if len(names) != 1:
            return [UNKNOWN]
        return self.fold([over], scope, lambda args: [folding.call(names[0], [item]) for item in args[0]])

    def _operate(self, op: ast.AST, left: ast.expr, right: ast.expr, scope: Scope) -> list[Value]:
        if SOME_TENSOR in [*self._values(left, scope), *self._values(right, scope)]:
            return [SOME_TENSOR]
        return self.fold([left, right], scope, lambda args: folding.operate(op, *args))

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, scope: Scope) -> list[Value]:
        try:
            items = list(islice(self._rounds(node, node.generators, scope), folding.LONGEST_LOOP + 1))
        except CannotFold:
            return [UNKNOWN]
        return [Folded(items) if len(items) <= folding.LONGEST_LOOP else UNKNOWN]

    def _rounds(
        self, node: ast.ListComp | ast.GeneratorExp, loops: list[ast.comprehension], scope: Scope
    ) -> Iterator[Any]:
        if not loops:
            yield self._constant(node.elt, scope)
            return
        items = self._constant(loops[0].iter, scope)
        if not isinstance(loops[0].target, ast.Name) or not isinstance(items, str | bytes | list | tuple):
            raise CannotFold
        if len(items) > folding.LONGEST_LOOP:
            raise CannotFold
        for item in items:
            inner = Scope(node, scope, {loops[0].target.id: [Assigned(ast.Constant(item), scope)]})
            if all(self._constant(test, inner) for test in loops[0].ifs):
                yield from self._rounds(node, loops[1:], inner)

    def _constant(self, node: ast.expr, scope: Scope) -> Any:
        match self._values(node, scope):
            case [Folded(value=value)]:
                return value
        raise CannotFold


def _combined(chosen: tuple[Value, ...], combine: Combine) -> Value:
    if not all(isinstance(value, Folded) for value in chosen):
        return UNKNOWN
    try:
        return Folded(folding.guarded(lambda: combine([value.value for value in chosen if isinstance(value, Folded)])))
    except CannotFold:
        return UNKNOWN


def _dictionary(keys_and_values: list[Any]) -> dict[Any, Any]:
    half = len(keys_and_values) // 2
    return dict(zip(keys_and_values[:half], keys_and_values[half:], strict=True))
