"""The pieces of C++ or CUDA source in the arguments of a call that compiles them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pkb.screen.c_source import Identifier, read_identifiers
from pkb.screen.names import Names
from pkb.screen.scopes import RETURN, Assigned, Defined, Scope
from pkb.screen.values import Literal


@dataclass(frozen=True)
class Text:
    """One string of the file that is part of a compiled source."""

    value: str
    line: int
    spread: bool
    """Whether the lines of the string are lines of the file."""

    def read_identifiers(self) -> Iterator[tuple[Identifier, int]]:
        """Yield the identifiers of the text, each with its line in the file."""
        for found in read_identifiers(self.value):
            yield found, self.line + (found.line if self.spread else 0)


def find_texts(call: ast.Call, scope: Scope, names: Names) -> tuple[list[Text], bool]:
    """Return the strings in the arguments of a call, and whether the call compiles them as they are written."""
    texts: list[Text] = []
    is_whole = True
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        found = [*_find_in(argument, scope, names, set())]
        texts += found
        is_whole = is_whole and (not found or _is_written_out(argument, scope, names))
    return texts, is_whole


def _is_written_out(node: ast.expr, scope: Scope, names: Names) -> bool:
    """Return whether an argument, or what its name is assigned, is a literal or a list of literals."""
    bindings = scope.look_up(node.id) if isinstance(node, ast.Name) else [Assigned(node, scope)]
    return all(isinstance(one, Assigned) and _is_literal(one.expr, one.scope, names) for one in bindings)


def _is_literal(node: ast.expr, scope: Scope, names: Names) -> bool:
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return all(isinstance(value, Literal) for part in parts for value in names.resolve(part, scope))


def _find_in(node: ast.AST, scope: Scope, names: Names, seen: set[ast.AST]) -> Iterator[Text]:
    """Yield the strings inside an expression, and inside the expressions that its names stand for."""
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        height = (node.end_lineno or node.lineno) - node.lineno
        yield Text(node.value, node.lineno, spread=height == node.value.count("\n"))
    for expr, where in _follow_name(node, scope, names):
        yield from _find_in(expr, where, names, seen)
    for child in ast.iter_child_nodes(node):
        yield from _find_in(child, scope, names, seen)


def _follow_name(node: ast.AST, scope: Scope, names: Names) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield the expressions that a name is assigned, and those that the function of this name returns."""
    for binding in scope.look_up(node.id) if isinstance(node, ast.Name) else []:
        found = names.scopes[binding.node].bindings.get(RETURN, []) if isinstance(binding, Defined) else [binding]
        yield from ((one.expr, one.scope) for one in found if isinstance(one, Assigned))
