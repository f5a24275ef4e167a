"""A problem as it is posed: everything that reference and candidate share."""

from dataclasses import dataclass, field, replace
from typing import Any

from pkb.errors import UsageError
from pkb.judge.setup.seeds import Seeds
from pkb.platforms import Platform
from pkb.problems.case import Case
from pkb.problems.problem import PUBLISHED, SOUND, Problem
from pkb.problems.size import Size
from pkb.settings import Limits
from pkb.trial import Trial, TrialKind

WHOLE_TRIAL = 1
"""The index of the trial that draws whole numbers, for problems whose sums are then exact."""
TIMED = Trial(TrialKind.TIMED)
"""Stands for everything that is timed where trials differ only by their seeds."""
_ROOM = 8 << 30
"""Bytes of arguments and results that the calls of one trial may hold together: the oracle needs twice as many."""
BY_NAME, BY_SEED = "by name", "by seed"
"""Where a model's weights come from: drawn for each of the reference's names, or the constructor's own."""
HIDDEN, PROBE = Trial(TrialKind.HIDDEN), Trial(TrialKind.PROBE)
_FEW_SIZES = 3


@dataclass(frozen=True)
class Setup:
    problem: Problem
    size: Size
    dtype: str
    world: int
    trials: int = 5
    """The number of ordinary trials."""
    calls: int = 3
    """Back-to-back calls in one trial, without a host synchronisation between them."""
    limits: Limits = field(default_factory=Limits)
    extra: tuple[Trial, ...] = (HIDDEN, PROBE)
    """Trials beyond the ordinary ones."""
    hidden: Size | None = None
    """The size of the hidden trial; None for the first that the problem has."""
    state: str = ""
    """For a model: BY_NAME or BY_SEED."""
    published: bool = False
    """Whether inputs, and a model's weights, are drawn as the published files say."""
    without: str = ""
    """For a model: a weight that is left as the constructor made it, to see whether that shows."""

    def __post_init__(self) -> None:
        self.problem.case(self.size, self.dtype, self.world)

    @property
    def checked_trials(self) -> tuple[Trial, ...]:
        return tuple(Trial(TrialKind.CHECK, index) for index in range(self.trials))

    @property
    def all_trials(self) -> tuple[Trial, ...]:
        return (*self.checked_trials, *self.extra)

    def pose_as(self, inputs: str) -> "Setup":
        """Return this setup with inputs of this kind. Raises UsageError where the problem has no such inputs."""
        problem = self.problem
        if inputs not in problem.input_kinds:
            raise UsageError(
                f"{problem.stem} draws its own inputs, which are {problem.input_kinds[0]}: --inputs {inputs} is for "
                "KernelBench's models and for a checkout of ParallelKernelBench (--suite DIR)"
            )
        problem.check_pose(self.size, self.dtype, self.world)
        if problem.builds:
            return self.pose_model(inputs == PUBLISHED)
        # A problem without a hidden size cannot say either which elements of its inputs may be changed.
        extra = self.extra if self.list_hidden_sizes() else ()
        return replace(self, published=inputs == PUBLISHED, extra=extra)

    def pose_model(self, published: bool) -> "Setup":
        """Return this setup for a model: with sound weights, inputs and a hidden size; or all as published."""
        heavy = self.problem.count_call_bytes(self.size, self.dtype)
        calls = max(1, min(self.calls, int(_ROOM // heavy))) if heavy else self.calls
        if published:
            return replace(self, published=True, state=BY_SEED, extra=(), calls=calls)
        hidden = (HIDDEN,) if self.list_hidden_sizes() else ()
        return replace(self, state=BY_NAME, extra=(*hidden, PROBE), calls=calls)

    def facts(self) -> dict[str, Any]:
        """Return what a record says about how the problem was posed."""
        has_choice = len(self.problem.input_kinds) > 1
        drawn = {"inputs": PUBLISHED if self.published else SOUND} if has_choice else {}
        drawn |= {"state": self.state} if self.state else {}
        flaw = {"degenerate": self.problem.degenerate} if self.problem.degenerate else {}
        return self.size.describe() | {"dtype": self.dtype, "world": self.world} | drawn | flaw

    def find_light_us(self, platform: Platform) -> float | None:
        """Return what a call takes at the speed of light; None where the hardware's figures are unknown."""
        if (hardware := platform.find_hardware()) is None:
            return None
        costs = [self.problem.cost(self.case(rank, TIMED)) for rank in range(self.world)]
        return 1e6 * hardware.compute_speed_of_light(costs, self.dtype, platform.one_device)

    def find_size(self, trial: Trial) -> Size:
        if trial.kind is not TrialKind.HIDDEN:
            return self.size
        return self.hidden or next(iter(self.list_hidden_sizes()), self.size)

    def list_hidden_sizes(self) -> tuple[Size, ...]:
        return self.problem.list_hidden_sizes(self.dtype, self.world)

    def draw_hidden_size(self, seeds: Seeds, judgement: int) -> "Setup":
        """Return this setup with the hidden size of one judgement.

        It is one of a few, so that expected results can be kept. The few are another secret choice in each judge.
        """
        sizes, place = self.list_hidden_sizes(), (self.problem.stem, self.dtype, self.world)
        few = seeds.random(*place, "hidden sizes").sample(sizes, min(_FEW_SIZES, len(sizes)))
        chosen = seeds.random(*place, "hidden size", judgement).choice(few) if few else None
        return replace(self, hidden=chosen)

    def case(self, rank: int, trial: Trial) -> Case:
        """Return a rank's case in a trial, without seeds."""
        posed: dict[str, Any] = {
            "trial": self.find_variant(trial),
            "whole": self.is_whole(trial),
            "outliers": self.has_outliers(trial),
            "published": self.published,
        }
        return self.problem.case(self.find_size(trial), self.dtype, self.world, rank, **posed)

    def find_variant(self, trial: Trial) -> int:
        """Return the variant that the problem poses: one per ordinary trial; what is timed is always the first."""
        return trial.index if trial.kind is TrialKind.CHECK else 0

    def is_whole(self, trial: Trial) -> bool:
        """Whether a trial draws whole numbers."""
        last = min(WHOLE_TRIAL, self.trials - 1)
        return self.problem.exact_sums and trial.kind is TrialKind.CHECK and trial.index == last

    def has_outliers(self, trial: Trial) -> bool:
        """Whether a few of the values that a trial draws are large: only in the first ordinary one."""
        return self.problem.outliers and trial == Trial(TrialKind.CHECK)
