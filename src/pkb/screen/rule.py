"""A rule: a small function over facts, with a sentence, an advice, and how grave it is in each track."""

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


class Found(Protocol):
    """A place that a rule objects to."""

    @property
    def line(self) -> int: ...

    @property
    def what(self) -> str: ...


ANY, SCRATCH, BOTH = (Track.ANY,), (Track.SCRATCH,), (Track.ANY, Track.SCRATCH)
Search = Callable[[Facts], Iterable[Found]]


@dataclass(frozen=True)
class Rule:
    name: str
    topic: str
    sentence: str
    """What is wrong with the thing found: the predicate of a sentence about it."""
    advice: str
    severity: dict[Track, Severity]
    """In the tracks that it applies to."""
    search: Search


_RULES: dict[str, Rule] = {}


def rule(advice: str, *, warn: Collection[Track] = (), reject: Collection[Track] = ()) -> Callable[[Search], Search]:
    """Register a function as a rule, under its own name; its docstring is the sentence."""

    def register(search: Search) -> Search:
        function: Any = search
        name, topic = function.__name__.replace("_", "-"), function.__module__.rpartition(".")[2]
        severity = dict.fromkeys(warn, Severity.WARN) | dict.fromkeys(reject, Severity.REJECT)
        _RULES[name] = Rule(name, topic, inspect.getdoc(search) or "", advice, severity, search)
        return search

    return register


@cache
def all_rules() -> dict[str, Rule]:
    """All rules by name. Adding one is adding its function to a module of pkb.screen.rules."""
    package = importlib.import_module("pkb.screen.rules")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return {rule.name: rule for rule in sorted(_RULES.values(), key=lambda rule: rule.topic)}
