"""Checks of a candidate's conduct. A check is one module with a CHECK, here or in a folder of PKB_PLUGINS.

A rank makes each check just before the candidate is imported, and asks it for its report after the trials. The judge
parses the reports of all ranks and concludes. A candidate shares its rank's process and could forge a report: these
checks catch the careless and explain; what must not be fooled does not depend on them.
docs/adding-a-check.md follows an example.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Protocol

from pkb.base.plugins import list_plugin_folders, load_objects
from pkb.errors import UsageError
from pkb.settings import Track

__path__ += list_plugin_folders("checks")


class Observations(Protocol):
    """What a rank observes of its candidate."""

    def list_library_calls(self) -> dict[str, int]:
        """Return how often each operator, collective and function of a library was called, by name."""

    @property
    def entry_module(self) -> Any:
        """The candidate's module; None before it is imported."""

    def count_raised_signals(self) -> int:
        """Return the number of words in the candidate's signal pads that are not zero."""


@dataclass(frozen=True)
class Breach:
    """What a check concludes against a candidate."""

    verdict: str
    """WRONG or CHEAT."""
    reason: str
    """One sentence: what was seen, and what to do."""
    rank: int | None = None
    details: dict[str, Any] = field(default_factory=dict)


class Check(ABC):
    name: ClassVar[str]
    """What the record's evidence calls it."""
    report_type: ClassVar[Any]
    """The type of a report, which the judge parses it into (`pkb.base.schema`)."""

    def __init__(self, observer: Observations):
        """Runs in a rank, just before the candidate is imported."""
        self.observer = observer

    @abstractmethod
    def report(self) -> Any:
        """Return plain data for the judge. Runs in the rank, after the candidate's calls."""

    @staticmethod
    @abstractmethod
    def conclude(reports: Sequence[Any], track: Track) -> Breach | None:
        """Return the breach that the reports of all ranks show, if any. Runs in the judge."""


@cache
def list_checks() -> tuple[type[Check], ...]:
    """Return all checks in the order of their modules' names: the first breach is the one that the record has."""
    found: dict[str, type[Check]] = load_objects(__name__, __path__, "CHECK")
    modules: dict[str, str] = {}
    for module, check in found.items():
        if modules.setdefault(check.name, module) != module:
            raise UsageError(f"{modules[check.name]}.py and {module}.py both define a check {check.name!r}; rename one")
    return tuple(found.values())
