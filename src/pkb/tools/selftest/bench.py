"""What the steps of a self-test share: the judge, the number of ranks, and the records so far."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pkb.base.paths import list_attempt_folders, list_solution_folders
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import Setup
from pkb.platforms import Platform
from pkb.problems.size import Size
from pkb.problems.suite import load_problem
from pkb.record import Record, SandboxFacts
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings
from pkb.speedup import compute_block_times

_USUAL_RANKS, _MOST_RANKS = 4, 8
_TRIALS = 2
_REINSTALL = "install pkb from a wheel, or run it in a checkout"
TIMED = RIGORS["quick"]


@dataclass
class Bench:
    judge: Judge
    ranks: int
    timed: list[Record] = field(default_factory=list)
    """Identical code that was timed."""
    sandbox: SandboxFacts = field(default_factory=SandboxFacts)
    """What was closed to the latest candidate."""
    nurseries: dict[int, list[Path]] = field(default_factory=dict)
    """The nurseries that were started: their folders by the id of their process."""

    def note_nursery(self) -> None:
        """Start a nursery unless there is one, and note what must be gone when the judge has been closed."""
        nursery = self.judge.begin_nursery()
        self.nurseries[nursery.process.pid] = [nursery.folder, nursery.shared]

    @property
    def has_gpu(self) -> bool:
        return self.judge.platform.device_type == "cuda"

    def pose(self, problem: str | int, ranks: int | None = None, timed: bool = False, dtype: str = "float32") -> Setup:
        """Pose a problem; one that will be timed is large enough for its time to be measured."""
        # On the host, calls at size tiny take microseconds, which say nothing; at paper size they take seconds.
        size: str | Size = ("paper" if self.has_gpu else Size(256, 256)) if timed else "tiny"
        settings = ProblemSettings(nproc=ranks or self.ranks, size=size, dtype=dtype, trials=_TRIALS)
        return self.judge.pose(load_problem(problem), settings)

    def judge_candidate(self, setup: Setup, candidate: Candidate, settings: JudgementSettings) -> Record:
        record = self.judge.judge(setup, candidate, settings)
        self.sandbox = record.environment.sandbox
        return record


def choose_ranks(platform: Platform, asked: int | None) -> int:
    """Return the number of ranks that was asked for; otherwise one per GPU, or four that share a device."""
    most = platform.max_ranks
    if asked and most and asked > most:
        raise UsageError(f"platform {platform.name} has room for {most} ranks, not {asked}; lower --nproc")
    return asked or (_USUAL_RANKS if platform.one_device else min(most or _USUAL_RANKS, _MOST_RANKS))


def find_shipped_kernel(name: str) -> Path:
    """Return the path of a shipped kernel, such as triton/1_allreduce_triton.py."""
    return _find_file(list_solution_folders, name)


def find_attempt(name: str) -> Path:
    """Return the path of one of the red team's attempts, such as honest/counts_epochs.py."""
    return _find_file(list_attempt_folders, name)


def _find_file(list_folders: Callable[[], list[Path]], name: str) -> Path:
    found = next((folder / name for folder in list_folders() if (folder / name).is_file()), None)
    if found is None:
        raise FileNotFoundError(f"{name} is not installed with pkb; {_REINSTALL}")
    return found


def describe_judgement(record: Record) -> dict[str, Any]:
    """Return the facts of a judgement that a self-test keeps."""
    facts = {
        "problem": record.problem,
        "candidate": record.candidate.name,
        "ranks": record.setup.world,
        "dtype": record.setup.dtype,
        "size": [record.setup.m, record.setup.n],
        "verdict": str(record.verdict),
        "check": record.evidence.check,
        "seconds": sum(record.seconds.values()),
    }
    return facts | ({"timing": _describe_timing(record)} if record.timing else {})


def _describe_timing(record: Record) -> dict[str, Any]:
    timing = record.timing
    assert timing, "only a judgement that was timed is described so"
    blocks = {name: [round(us, 2) for us in compute_block_times(spans)] for name, spans in timing.blocks_us.items()}
    return {
        "ratio": timing.speedup,
        "interval": list(timing.interval),
        "pace": str(record.pace),
        "reference_us": timing.reference_us,
        "candidate_us": timing.candidate_us,
        "spread": timing.spread,
        "control": timing.control.ratio if timing.control else None,
        "skew_us": timing.skew_us,
        "queued": timing.queued,
        "judge_clock_us": timing.judge_clock_us,
        "clocks": timing.clocks,
        "block_us": blocks,
    }
