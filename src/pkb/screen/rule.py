"""A rule of the screen: a function over the facts of a file, a sentence, an advice, and a severity for each track."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Protocol

from pkb.screen.facts import Facts
from pkb.settings import Track


class Severity(StrEnum):
    WARN = "warn"
    REJECT = "reject"


class Spot(Protocol):
    """A place in the file that a rule objects to: a use of a name, or a hit."""

    @property
    def line(self) -> int: ...

    @property
    def what(self) -> str: ...


ANY, SCRATCH, BOTH = (Track.ANY,), (Track.SCRATCH,), (Track.ANY, Track.SCRATCH)
Search = Callable[[Facts], Iterable[Spot]]


@dataclass(frozen=True)
class Rule:
    name: str
    topic: str
    sentence: str
    """The predicate of a sentence whose subject is the thing found: it says what is wrong."""
    advice: str
    severity: dict[Track, Severity]
    """How grave a finding is, in each track that the rule applies to."""
    search: Search


_RULES: dict[str, Rule] = {}


def rule(advice: str, *, warn: Collection[Track] = (), reject: Collection[Track] = ()) -> Callable[[Search], Search]:
    """Register a function as the rule of the same name; its docstring becomes the rule's sentence."""

    def register(search: Search) -> Search:
        function: Any = search
        name, topic = function.__name__.replace("_", "-"), function.__module__.rpartition(".")[2]
        severity = dict.fromkeys(warn, Severity.WARN) | dict.fromkeys(reject, Severity.REJECT)
        _RULES[name] = Rule(name, topic, inspect.getdoc(search) or "", advice, severity, search)
        return search

    return register


@cache
def load_rules() -> dict[str, Rule]:
    """Import every module of pkb.screen.rules, and return the rules in them by name."""
    package = importlib.import_module("pkb.screen.rules")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return {rule.name: rule for rule in sorted(_RULES.values(), key=lambda rule: rule.topic)}
