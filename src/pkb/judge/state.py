"""What is known about one candidate so far: the record is made of it, however the judgement ends."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pkb.failure import Failure
from pkb.judge.correctness.check import Wrong
from pkb.judge.correctness.reference import Reference
from pkb.judge.correctness.results import Outputs
from pkb.judge.profiling.trace import Profile
from pkb.judge.worlds.logs import Logs
from pkb.record import Evidence, Timing, Verdict
from pkb.screen import ScreenFinding
from pkb.trial import Trial, TrialKind


@dataclass
class State:
    screened: bool = False
    """Whether the static screen has let the candidate pass."""
    verdict: Verdict = Verdict.CORRECT
    reason: str = ""
    evidence: Evidence = field(default_factory=Evidence)
    warnings: list[ScreenFinding] = field(default_factory=list)
    libraries: Path | None = None
    """Where the candidate's compiled extensions are; None when it has none."""
    reference: Reference | None = None
    weights: str = ""
    """For a model: where its weights came from."""
    trial: Trial = field(default_factory=lambda: Trial(TrialKind.CHECK))
    outputs: Outputs = field(default_factory=dict)
    """The outputs of the last trial whose tensors were fetched."""
    strided_outputs: set[int] = field(default_factory=set)
    """Numbers of returned tensors that were not contiguous."""
    library_calls: dict[str, int] = field(default_factory=dict)
    timing: Timing | None = None
    profile: Profile | None = None
    logs: Logs | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def expected(self) -> Reference:
        """The reference's results, which are there once the reference has run."""
        assert self.reference, "the reference runs first"
        return self.reference

    def fail(self, failure: Failure) -> None:
        """Take verdict, reason and evidence from what ended the judgement."""
        self.verdict, self.reason, self.evidence = failure.verdict, failure.reason, failure.evidence
        if isinstance(failure, Wrong):
            self.outputs = failure.outputs

    @contextmanager
    def time_phase(self, phase: str) -> Iterator[None]:
        """Add the wall time of a phase of the judgement."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[phase] = round(self.seconds.get(phase, 0.0) + time.monotonic() - start, 3)
