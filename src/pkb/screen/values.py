"""The values that an expression may stand for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pkb.screen.scopes import Definition
from pkb.screen.torch_names import TENSOR, UNKNOWN_NAME

MOST_VALUES = 16
"""An expression with more possible values than this may also have an unknown one."""


@dataclass(frozen=True)
class Dotted:
    """Something from outside the file, by its full name: `torch.cuda.Event`, or `torch.cuda.Event()` once called.

    A part that is only known at run time is a question mark: `torch.?` is some attribute of torch.
    """

    name: str


@dataclass(frozen=True)
class Literal:
    """A constant that is written in the file, or joined from strings that are."""

    value: Any


@dataclass(frozen=True)
class Local:
    """A function or class of the file itself."""

    node: Definition


Value = Dotted | Literal | Local
UNKNOWN = Dotted(UNKNOWN_NAME)
SOME_TENSOR = Dotted(TENSOR)


def limit_values(values: Iterable[Value]) -> list[Value]:
    """Drop duplicates, and replace what exceeds MOST_VALUES by UNKNOWN."""
    found = list(dict.fromkeys(values))
    return found if len(found) <= MOST_VALUES else [*found[:MOST_VALUES], UNKNOWN]


def read_text(value: Value) -> str | None:
    """Return the text of a literal string, and None for every other value."""
    return value.value if isinstance(value, Literal) and isinstance(value.value, str) else None
