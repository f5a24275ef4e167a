"""What an operator is: a name, and a function from a node of the syntax tree to what may stand in its place."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A node that takes another's place. Without a text, both are shown as source."""

    replacement: ast.AST
    text: str = ""


@dataclass(frozen=True)
class Operator:
    """One family of changes. `mutate` gets every node of a reference and must leave it as it is: it yields copies."""

    name: str
    mutate: Callable[[ast.AST], Iterator[ast.AST | Mutation]]
    needs: str = ""
    """What a problem's file must contain: without it, no judged call could show a change of this family."""
    no_effect_in: str = ""
    """The dtype in which changes of this family may change nothing: there, the reference's bits are no survivor."""
