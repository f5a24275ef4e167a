"""The pieces of C++ or CUDA source in the arguments of a call that compiles them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pkb.screen.c_source import Identifier, identifiers
from pkb.screen.functions import returned_by
from pkb.screen.names import Names
from pkb.screen.scopes import Assigned, Defined, Scope
from pkb.screen.values import Folded


@dataclass(frozen=True)
class Text:
    value: str
    line: int
    spread: bool
    """Its lines are lines of the file."""

    def identifiers(self) -> Iterator[tuple[Identifier, int]]:
        """With their lines in the file."""
        for found in identifiers(self.value):
            yield found, self.line + (found.line if self.spread else 0)


def texts_of(call: ast.Call, scope: Scope, names: Names) -> tuple[list[Text], bool]:
    """The pieces, and whether they are all of it."""
    texts: list[Text] = []
    whole = True
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        found, all_of_it = _texts(argument, scope, names)
        texts += found
        whole = whole and all_of_it
    return texts, whole


def _texts(node: ast.expr, scope: Scope, names: Names) -> tuple[list[Text], bool]:
    """Where an argument is not a constant as a whole, the constants in it."""
    values = [v.value for v in names.values(node, scope) if isinstance(v, Folded)]
    strings = [s for value in values for s in (value if isinstance(value, list) else [value]) if isinstance(s, str)]
    if strings and len(values) == len(names.values(node, scope)):
        origin = _origin(node, scope, names)
        return [Text(s, *_place(origin or node, s)) for s in strings], True
    leaves = [part for part in _leaves(node, scope, names, set()) if isinstance(part.value, str)]
    return [Text(str(leaf.value), *_place(leaf, str(leaf.value))) for leaf in leaves], not leaves


def _origin(node: ast.expr, scope: Scope, names: Names) -> ast.Constant | None:
    leaves = list(_leaves(node, scope, names, set()))
    return leaves[0] if len(leaves) == 1 else None


def _leaves(node: ast.AST, scope: Scope, names: Names, seen: set[ast.AST]) -> Iterator[ast.Constant]:
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, ast.Constant):
        yield node
    for expr, where in _bound(node, scope, names):
        yield from _leaves(expr, where, names, seen)
    for child in ast.iter_child_nodes(node):
        yield from _leaves(child, scope, names, seen)


def _bound(node: ast.AST, scope: Scope, names: Names) -> Iterator[tuple[ast.expr, Scope]]:
    """The expressions behind a name: what it is bound to, or what its function returns."""
    for binding in scope.lookup(node.id) if isinstance(node, ast.Name) else []:
        if isinstance(binding, Assigned):
            yield binding.expr, binding.scope
        if isinstance(binding, Defined) and isinstance(binding.node, ast.FunctionDef):
            yield from ((expr, names.scopes[binding.node]) for expr in returned_by(binding.node))


def _place(node: ast.expr, text: str) -> tuple[int, bool]:
    height = (node.end_lineno or node.lineno) - node.lineno
    return node.lineno, isinstance(node, ast.Constant) and height == text.count("\n")
