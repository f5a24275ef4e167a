"""The judge: problem and candidate in, record out. Read this file top to bottom for the whole story."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pkb.candidate import Candidate
from pkb.environment import environment
from pkb.errors import UsageError
from pkb.judge import artifacts
from pkb.judge.check import check_trial
from pkb.judge.compare import Tolerance
from pkb.judge.failure import Failure
from pkb.judge.limits import Limits
from pkb.judge.nursery import Nursery
from pkb.judge.reference import References
from pkb.judge.sandbox import Sandbox
from pkb.judge.seeds import Seeds
from pkb.judge.seen import Seen
from pkb.judge.timing import measure
from pkb.judge.trials import Setup
from pkb.judge.world import World
from pkb.platforms import platform_named
from pkb.problem import Problem, Size
from pkb.record import Pace, Record, Verdict
from pkb.registry import load

Progress = Callable[[str], None]


class Judge:
    """Holds the secret, the expected outputs and the clocks. Use as a context manager, or call close()."""

    def __init__(self, platform: str = "auto", limits: Limits | None = None, sandbox: str = "auto"):
        self.platform = platform_named(platform)
        self.limits = limits or Limits()
        self.sandbox = Sandbox(sandbox)
        self.seeds = Seeds()
        self.references = References()
        self._nursery: Nursery | None = None

    @property
    def nursery(self) -> Nursery:
        if self._nursery is None:
            self._nursery = Nursery(self.platform)
            self._nursery.wait_until_ready()
        return self._nursery

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.sandbox.close()
        if self._nursery:
            self._nursery.close()
            self._nursery = None

    def pose(
        self,
        problem: Problem | str | int,
        *,
        nproc: int = 4,
        size: str | Size = "tiny",
        dtype: str = "float32",
        trials: int = 5,
        calls: int = 3,
    ) -> Setup:
        """Fix everything that reference and candidate share. Raises UsageError when it cannot be posed."""
        found = problem if isinstance(problem, Problem) else load(problem)
        most = self.platform.most_ranks()
        if most is not None and nproc > most:
            raise UsageError(f"platform {self.platform.name} has room for {most} ranks, not {nproc}; lower --nproc")
        return Setup(found, found.size(size), dtype, nproc, trials, calls, self.limits)

    def judge(
        self,
        setup: Setup,
        candidate: Candidate,
        *,
        tolerance: Tolerance | None = None,
        measure_perf: bool = False,
        out: Path | None = None,
        progress: Progress = lambda step: None,
    ) -> Record:
        """Judge one candidate. Whatever it does is a verdict, never an exception."""
        seen = Seen()
        try:
            with seen.timed("reference"):
                progress("reference")
                seen.reference = self.references.get(setup, self.nursery, self.seeds)
            with seen.timed("candidate"):
                self._try(setup, candidate, tolerance, measure_perf, progress, seen)
        except Failure as failure:
            seen.fail(failure)
            if failure.evidence.get("check") == "nursery":
                # The next judgement starts a new one.
                self.close()
        record = self._record(setup, candidate, tolerance, seen)
        if out:
            artifacts.save(out, record, candidate, seen)
        return record

    def _try(
        self,
        setup: Setup,
        candidate: Candidate,
        tolerance: Tolerance | None,
        measure_perf: bool,
        progress: Progress,
        seen: Seen,
    ) -> None:
        """Load, check every trial, time. Raises the first Failure."""
        with self.candidate_world(setup, candidate, seen) as world:
            for trial in range(setup.trials):
                progress(f"trial {trial + 1} of {setup.trials}")
                seen.trial = trial
                jitter = self.platform.jitter()
                seen.outputs = check_trial(world, setup, seen.expected, self.seeds, trial, tolerance, jitter)
            if measure_perf:
                progress("timing")
                seen.timing = measure(world, setup, self.nursery, self.seeds)
            if left := world.end():
                raise _left_behind(left)

    @contextmanager
    def candidate_world(self, setup: Setup, candidate: Candidate, seen: Seen) -> Iterator[World]:
        """A started world with the candidate loaded on every rank."""
        if lacking := candidate.backend.missing():
            raise Failure(Verdict.ENVIRONMENT, lacking, check="backend")
        with self.sandbox.world(self.nursery, setup.world, setup.limits) as world:
            seen.logs = world.logs
            # Nothing outside its folder can be counted on to be visible there.
            problem, file = world.folder / setup.problem.path.name, world.folder / "candidate.py"
            problem.write_bytes(setup.problem.path.read_bytes())
            file.write_bytes(candidate.source)
            order = {"do": "load", "problem": str(problem), "candidate": str(file)}
            world.ask(order, "load", setup.limits.load_s)
            yield world

    def _record(self, setup: Setup, candidate: Candidate, tolerance: Tolerance | None, seen: Seen) -> Record:
        return Record(
            problem=setup.problem.stem,
            category=setup.problem.category,
            candidate=candidate.facts(),
            setup=_facts(setup, tolerance),
            verdict=seen.verdict,
            reason=seen.reason or _praise(setup),
            evidence=seen.evidence,
            pace=seen.timing.pace if seen.timing else Pace.UNTIMED,
            timing=asdict(seen.timing) if seen.timing else None,
            environment=environment(self.platform) | {"sandbox": self.sandbox.facts},
            seconds=seen.seconds,
        )


def _praise(setup: Setup) -> str:
    count = setup.trials * setup.calls * setup.world
    return f"all {count} results right ({setup.trials} trials x {setup.calls} calls x {setup.world} ranks)"


def _left_behind(commands: list[str]) -> Failure:
    return Failure(
        Verdict.CHEAT,
        f"left a process running after its last call ({commands[0]}); a kernel must finish its work inside the call",
        check="left-process",
        processes=commands,
    )


def _facts(setup: Setup, tolerance: Tolerance | None) -> dict[str, Any]:
    rule = asdict(tolerance) if tolerance else "oracle"
    shape = {"m": setup.size.m, "n": setup.size.n, "dtype": setup.dtype, "world": setup.world}
    return shape | {"trials": setup.trials, "calls": setup.calls, "compare": rule, "limits": asdict(setup.limits)}
