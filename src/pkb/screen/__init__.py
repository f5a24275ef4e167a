"""The static screen: what a candidate's source shows before it is run.

The rules in pkb.screen.rules look at facts from the syntax tree. Names are followed through imports and aliases, and
literal strings are read; comments, and strings that the file does not run, are not looked at. The screen saves time and
explains itself. It can be deceived: the judge's checks at run time do not rely on it.
"""

import ast
import warnings
from dataclasses import dataclass

from pkb.backends import Backend
from pkb.base.printable import clean_fields, clean_sentence
from pkb.screen.facts import Facts, Hit
from pkb.screen.rule import Rule, Severity, Spot, load_rules
from pkb.settings import Track

__all__ = ["Rule", "ScreenFinding", "Severity", "Track", "load_rules", "screen"]

_MOST_BYTES = 1 << 20
_MOST_QUOTED = 200
"""The most characters of a candidate's source that a finding quotes: a name, or a whole expression."""


@dataclass(frozen=True)
class ScreenFinding:
    rule: str
    severity: Severity
    line: int
    sentence: str
    what: str
    """The full name of the thing found."""
    advice: str

    def __post_init__(self) -> None:
        clean_fields(self)


def screen(source: bytes, backend: Backend, track: Track = Track.ANY) -> list[ScreenFinding]:
    """Apply the rules of a track to a source, and return the findings in the order of the file.

    A source that Python cannot parse has no findings: loading it reports the error.
    """
    try:
        if len(source) > _MOST_BYTES:
            return [_report_unreadable()]
        try:
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(source)
        except (SyntaxError, ValueError):
            return []
        facts = Facts(tree, backend)
        rules = [rule for rule in load_rules().values() if track in rule.severity]
        found = {_make_finding(rule, track, spot) for rule in rules for spot in rule.search(facts)}
    except (MemoryError, RecursionError):
        return [_report_unreadable()]
    return sorted(found, key=lambda finding: (finding.line, finding.rule, finding.what))


def _make_finding(rule: Rule, track: Track, spot: Spot) -> ScreenFinding:
    what = clean_sentence(spot.what, _MOST_QUOTED)
    return ScreenFinding(rule.name, rule.severity[track], spot.line, f"{what} {rule.sentence}", what, rule.advice)


def _report_unreadable() -> ScreenFinding:
    return _make_finding(load_rules()["unreadable"], Track.ANY, Hit(1, "the file"))
