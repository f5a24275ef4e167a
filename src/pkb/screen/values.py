"""What an expression may stand for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pkb.screen.scopes import Definition
from pkb.screen.torch_names import TENSOR, UNKNOWN_NAME

MOST_VALUES = 16
"""Beyond so many possibilities the rest is UNKNOWN."""


@dataclass(frozen=True)
class Dotted:
    """Something from outside the file, by its full name: `torch.cuda.Event`, `torch.cuda.Event()` once called."""

    name: str


@dataclass(frozen=True)
class Folded:
    """A constant."""

    value: Any


@dataclass(frozen=True)
class Method:
    """A method of a constant."""

    value: Any
    name: str


@dataclass(frozen=True)
class Local:
    """A function or class of the file itself."""

    node: Definition


Value = Dotted | Folded | Method | Local
UNKNOWN = Dotted(UNKNOWN_NAME)
SOME_TENSOR = Dotted(TENSOR)


def distinct(values: Iterable[Value]) -> list[Value]:
    found: list[Value] = []
    for value in values:
        if len(found) == MOST_VALUES:
            return [*found, UNKNOWN]
        if value not in found:
            found.append(value)
    return found


def elements(value: Value) -> list[Value]:
    """What a loop over the value binds."""
    if isinstance(value, Folded) and isinstance(value.value, str | bytes | list | tuple):
        rest = [UNKNOWN] if len(value.value) > MOST_VALUES else []
        return [*(Folded(item) for item in value.value[:MOST_VALUES]), *rest]
    return [value] if value == SOME_TENSOR else [UNKNOWN]


def text(value: Value) -> str | None:
    return value.value if isinstance(value, Folded) and isinstance(value.value, str) else None
