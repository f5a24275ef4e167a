"""What the judge has seen of one candidate so far: the record is made of it, however the judgement ends."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pkb.failure import Failure
from pkb.judge.correctness.check import Wrong
from pkb.judge.correctness.reference import Reference
from pkb.judge.correctness.results import Outputs
from pkb.judge.profiling.trace import Profile
from pkb.judge.worlds.logs import Logs
from pkb.record import Verdict
from pkb.speedup import Timing


@dataclass
class Seen:
    screened: bool = False
    """Whether the static screen has let it pass."""
    verdict: Verdict = Verdict.CORRECT
    reason: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    libraries: Path | None = None
    """Where its compiled extensions are; None when it has none."""
    reference: Reference | None = None
    state: str = ""
    """Of a model: where its weights came from."""
    trial: int = 0
    outputs: Outputs = field(default_factory=dict)
    """Of the last trial that handed any over."""
    library_calls: dict[str, int] = field(default_factory=dict)
    timing: Timing | None = None
    profile: Profile | None = None
    logs: Logs | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def expected(self) -> Reference:
        assert self.reference, "the reference runs first"
        return self.reference

    def fail(self, failure: Failure) -> None:
        self.verdict, self.reason, self.evidence = failure.verdict, failure.reason, failure.evidence
        if isinstance(failure, Wrong):
            self.outputs = failure.outputs

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[phase] = round(self.seconds.get(phase, 0.0) + time.monotonic() - start, 3)
