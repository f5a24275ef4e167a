"""A judgement that ends early: raised where it is seen, turned into a record by the judge."""

from typing import Any

from pkb.record import Verdict


class Failure(Exception):
    """Verdict, the sentence for the record, and its evidence."""

    def __init__(self, verdict: Verdict, reason: str, **evidence: Any):
        super().__init__(reason)
        self.verdict = verdict
        self.reason = reason
        self.evidence = evidence
