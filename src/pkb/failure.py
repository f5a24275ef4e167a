"""A judgement that ends early: raised where the cause is seen, turned into a record by the judge."""

from dataclasses import fields
from typing import Any

from pkb.base.printable import clean_sentence
from pkb.base.schema import dump
from pkb.record import Evidence, Verdict

_COMMON = {one.name for one in fields(Evidence)} - {"details"}
_TYPED = ("trial", "findings")


class Failure(Exception):
    """A verdict, the sentence for the record, and the evidence. A candidate's words in them are made printable."""

    def __init__(self, verdict: Verdict, reason: str, *, evidence: Evidence | None = None, **facts: Any):
        """Facts that are no field of Evidence become its details."""
        self.reason = clean_sentence(reason)
        super().__init__(self.reason)
        self.verdict = verdict
        self.evidence = evidence or make_evidence(facts)


def make_evidence(facts: dict[str, Any]) -> Evidence:
    """Return the evidence with these facts: fields of Evidence by their names, all others as details."""
    plain = {name: value if name in _TYPED else dump(value) for name, value in facts.items()}
    common = {name: value for name, value in plain.items() if name in _COMMON}
    return Evidence(**common, details={name: value for name, value in plain.items() if name not in _COMMON})
