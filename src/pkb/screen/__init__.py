"""The static screen: what a candidate's source shows before it is run.

Rules look at facts from the syntax tree, names resolved and constants folded: never at comments, nor at strings that
nobody runs. What cannot be seen here, the judge's own checks must see; the screen saves time and explains.
"""

import ast
import warnings
from dataclasses import dataclass

from pkb.backends import Backend
from pkb.screen.facts import Facts, Hit
from pkb.screen.fixpoint import TooComplex
from pkb.screen.rule import Found, Rule, Severity, all_rules
from pkb.settings import Track

__all__ = ["Finding", "Rule", "Severity", "Track", "all_rules", "screen"]

_LONGEST = 1 << 20


@dataclass(frozen=True)
class Finding:
    rule: str
    severity: Severity
    line: int
    sentence: str
    what: str
    """The name that gave it away, in full."""
    advice: str


def screen(source: bytes, backend: Backend, track: Track = Track.ANY) -> list[Finding]:
    """Findings in the order of the file. A source that Python cannot parse has none: loading it says why."""
    try:
        if len(source) > _LONGEST:
            return [_unreadable()]
        try:
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(source)
        except (SyntaxError, ValueError):
            return []
        facts = Facts(tree, backend.name)
        applied = [rule for rule in all_rules().values() if track in rule.severity]
        found = {_finding(rule, track, hit) for rule in applied for hit in rule.search(facts)}
    except (MemoryError, RecursionError, TooComplex):
        return [_unreadable()]
    return sorted(found, key=lambda finding: (finding.line, finding.rule, finding.what))


def _finding(rule: Rule, track: Track, hit: Found) -> Finding:
    return Finding(rule.name, rule.severity[track], hit.line, f"{hit.what} {rule.sentence}", hit.what, rule.advice)


def _unreadable() -> Finding:
    return _finding(all_rules()["unreadable"], Track.ANY, Hit(1, "the file"))
