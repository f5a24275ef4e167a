"""What a trial asks of every rank."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

from torch import Tensor

from pkb.judge.setup.seeds import Seeds
from pkb.judge.worlds.world import World, garbled
from pkb.platforms import Platform
from pkb.problems.case import Case
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.protocol.channel import FORGED, Message, wire_name
from pkb.protocol.sent_inputs import Formless, given
from pkb.protocol.spot_check import Excerpt
from pkb.settings import Limits

FIRST_TIMED_TRIAL = 1_000_000
"""Timed blocks count on from here: their seeds are never those of checked trials."""
FIRST_CONTROL = 1_250_000
"""Those that time the reference in the ranks that a candidate will be given: it must not find what it will be asked."""
FIRST_STRETCH = 1_500_000
"""And those under the judge's own clock from here."""
HIDDEN_TRIAL = 500_000
"""A size that no candidate is told of."""
PROBE_TRIAL = 500_001
"""The same inputs in every call, but for one element of one rank: what depends on it must move."""
WHOLE_TRIAL = 1
"""The trial that draws whole numbers, for problems whose sums are then exact."""
_ROOM = 8 << 30
"""Bytes of arguments and results that the calls of one trial may hold together: the oracle needs twice as many."""
_CLEARLY, _A_LITTLE = (0.5, 1.0), (0.05, 0.1)
"""How late a rank is: ranges of shares of the platform's jitter."""
BY_NAME, BY_SEED = "by name", "by seed"
"""Where a model's weights come from: drawn for each of the reference's names, or the constructor's own."""


@dataclass(frozen=True)
class Setup:
    """A problem posed: everything that reference and candidate must have in common."""

    problem: Problem
    size: Size
    dtype: str
    world: int
    trials: int = 5
    calls: int = 3
    """Back-to-back calls in one trial, without a host synchronisation between them."""
    limits: Limits = field(default_factory=Limits)
    extra: tuple[int, ...] = (HIDDEN_TRIAL, PROBE_TRIAL)
    """Trials beyond the ordinary ones."""
    state: str = ""
    """Of a model: BY_NAME or BY_SEED."""
    published: bool = False
    """Of a model: inputs and weights as the public convention has them."""
    without: str = ""
    """Of a model: a weight that is left as the constructor made it, to see whether that shows."""

    def __post_init__(self) -> None:
        self.problem.case(self.size, self.dtype, self.world)

    @property
    def all_trials(self) -> tuple[int, ...]:
        return (*range(self.trials), *self.extra)

    def of_a_model(self, published: bool) -> "Setup":
        """With sound weights and inputs, and a hidden size where there is one; or all as published."""
        heavy = self.problem.call_bytes(self.size, self.dtype)
        calls = max(1, min(self.calls, int(_ROOM // heavy))) if heavy else self.calls
        if published:
            return replace(self, published=True, state=BY_SEED, extra=(), calls=calls)
        hidden = (HIDDEN_TRIAL,) if self.problem.hidden_size(self.dtype, self.world) else ()
        return replace(self, state=BY_NAME, extra=(*hidden, PROBE_TRIAL), calls=calls)

    def facts(self) -> dict[str, Any]:
        """What a record says about how the problem was posed."""
        drawn = {"inputs": "published" if self.published else "sound", "state": self.state} if self.state else {}
        flaw = {"degenerate": self.problem.degenerate} if self.problem.degenerate else {}
        return self.size.facts() | {"dtype": self.dtype, "world": self.world} | drawn | flaw

    def light_us(self, platform: Platform) -> float | None:
        """What a call takes at the speed of light; None where we have no figures of the hardware."""
        if (hardware := platform.hardware()) is None:
            return None
        costs = [self.problem.cost(self.case(rank, FIRST_TIMED_TRIAL)) for rank in range(self.world)]
        return 1e6 * hardware.speed_of_light(costs, self.dtype, platform.one_device)

    def size_of(self, trial: int) -> Size:
        hidden = self.problem.hidden_size(self.dtype, self.world) if trial == HIDDEN_TRIAL else None
        return hidden or self.size

    def case(self, rank: int, trial: int) -> Case:
        size, whole = self.size_of(trial), self.whole(trial)
        seeds: dict[str, Any] = {"trial": _variant(trial), "whole": whole, "published": self.published}
        return self.problem.case(size, self.dtype, self.world, rank, **seeds)

    def whole(self, trial: int) -> bool:
        return self.problem.exact_sums and trial == min(WHOLE_TRIAL, self.trials - 1)

    def shape(self, trial: int) -> Message:
        return {
            "size": asdict(self.size_of(trial)),
            "dtype": self.dtype,
            "trial": _variant(trial),
            "whole": self.whole(trial),
            "published": self.published,
            "on_host": self._is_sent(trial),
        }

    def _is_sent(self, trial: int) -> bool:
        """Whether the judge draws the inputs itself: a seed is worth something only to others."""
        return trial == HIDDEN_TRIAL and self.world > 1

    def recipe(self, seeds: Seeds, trial: int) -> Message | None:
        """How a model is built for a trial: with other weights in each, but the same in all that is timed."""
        always, own = self._construction(seeds), seeds.of(self.problem.stem, min(trial, FIRST_TIMED_TRIAL), "state")
        return self.problem.recipe(self.size_of(trial), (always, own), self.state == BY_NAME, self.without)

    def _construction(self, seeds: Seeds) -> int:
        return seeds.of(self.problem.stem, "construction")

    def agreed(self, world: World, seeds: Seeds) -> "Setup":
        """Build a candidate's model once, to see what it holds: this setup, or one whose weights it can be given."""
        recipe = self.problem.recipe(self.size, (self._construction(seeds),) * 2, by_name=False)
        if recipe is None:
            return self
        (answer,) = world.ask({"do": "hold", "case": self.shape(0), "recipe": recipe}, "load", self.limits.load_s)
        try:
            held = {str(name): [int(size) for size in shape] for name, shape in answer["held"].items()}
        except FORGED as error:
            raise garbled(world, 0, "load") from error
        taken = self.state == BY_NAME and self.problem.takes(held, self.size)
        return replace(self, state=BY_NAME if taken else BY_SEED)

    def prepare(
        self,
        world: World,
        seeds: Seeds,
        trial: int,
        oracle: bool = False,
        first: int = 0,
        pads: Sequence[int] = (),
    ) -> None:
        """Have every rank draw the inputs of one trial, from call `first` on, each from seeds of its own.

        `pads` are bytes to be taken before.
        """

        def message(rank: int) -> Message:
            drawing = self.drawing(seeds, trial, rank, self.calls, first)
            recipe = self.recipe(seeds, trial)
            return {"do": "prepare", "oracle": oracle, "recipe": recipe, "pads": list(pads), **drawing}

        world.ask(message, "prepare", self.limits.trial_s)

    def excerpts(
        self, seeds: Seeds, trial: int, call: int, rank: int, shapes: Sequence[Sequence[int]]
    ) -> list[Excerpt | None]:
        """What is compared of the tensors of a result; None for all of one."""
        place = (self.problem.stem, trial, call, rank, "excerpt")
        chosen = Excerpt.part if trial >= FIRST_STRETCH else Excerpt.of
        return [chosen(shape, seeds.random(*place, k)) for k, shape in enumerate(shapes)]

    def order_warily(self, world: World, seeds: Seeds, trial: int, jitter: float = 0.0) -> None:
        """The same for a candidate: in memory that it knows, and at the hidden size without seeds of the inputs.

        They are only told: the answer must be heard.
        """
        sent = self._given(seeds, trial) if self._is_sent(trial) else []

        def message(rank: int) -> Message:
            facts = [[_facts(tensor) for tensor in call] for call in sent[rank]] if sent else None
            drawing = self.drawing(seeds, trial, rank, self.calls, jitter=jitter, decoy=bool(sent))
            return {"do": "prepare", "wear": True, "given": facts, "recipe": self.recipe(seeds, trial), **drawing}

        world.tell(message, [list(chain(*calls)) for calls in sent])

    def _given(self, seeds: Seeds, trial: int) -> list[list[list[Tensor]]]:
        """What the judge draws, by rank and call; nothing where ranks must draw for themselves."""
        try:
            return [
                [given(self.problem, *self._cases(seeds, trial, call, rank)) for call in range(self.calls)]
                for rank in range(self.world)
            ]
        except Formless:
            return []

    def _cases(self, seeds: Seeds, trial: int, call: int, rank: int) -> list[Case]:
        """A call's case, and the one that a rank draws in its place."""
        orders = [self._call(seeds, trial, call, rank, jitter=0.0, decoy=decoy) for decoy in (False, True)]
        case = self.case(rank, trial)
        return [replace(case, seed=order["seed"], shared_seed=order["shared_seed"]) for order in orders]

    def drawing(
        self,
        seeds: Seeds,
        trial: int,
        rank: int,
        count: int,
        first: int = 0,
        jitter: float = 0.0,
        decoy: bool = False,
    ) -> Message:
        """What a rank must know to draw the inputs of so many calls, or, as a decoy, only their form."""
        calls = [self._call(seeds, trial, first + call, rank, jitter, decoy) for call in range(count)]
        return {"case": self.shape(trial), "calls": calls}

    def _call(self, seeds: Seeds, trial: int, call: int, rank: int, jitter: float, decoy: bool = False) -> Message:
        place = (self.problem.stem, trial, call)
        drawn = (self.problem.stem, trial, 0) if trial == PROBE_TRIAL else (*place, "decoy") if decoy else place
        late = self._lateness(seeds, trial, call) if jitter else {}
        return {
            "seed": seeds.of(*drawn, rank),
            "shared_seed": seeds.of(*drawn, "shared"),
            "delay": jitter * late.get(rank, 0.0),
            "bump": self._bump(seeds, trial, call, rank),
        }

    def _lateness(self, seeds: Seeds, trial: int, call: int) -> dict[int, float]:
        """Who is late in a call, and how much of the platform's jitter.

        Waiting is most of what a trial costs: in the ordinary ones together every rank is clearly late once, in a call
        that nobody can foresee; in all other calls some rank is, a little. At the hidden size that is so in one call.
        """
        if self.world == 1 or trial == PROBE_TRIAL:
            # Alone, nobody is late; and with the same inputs in all calls, what is read too early hardly differs.
            return {}
        draw = seeds.random(self.problem.stem, trial, call, "late")
        if trial == HIDDEN_TRIAL:
            chosen = seeds.random(self.problem.stem, trial, "late").randrange(self.calls)
            return {draw.randrange(self.world): draw.uniform(*_A_LITTLE)} if call == chosen else {}
        turns = self.trials * self.calls
        order = seeds.random(self.problem.stem, "turns to be late").sample(range(turns), turns)
        turn = order[trial * self.calls + call]
        return {turn % self.world: draw.uniform(*(_CLEARLY if turn < self.world else _A_LITTLE))}

    def _bump(self, seeds: Seeds, trial: int, call: int, rank: int) -> list[float]:
        """Where this rank changes one element of its inputs, as shares of tensors and elements; empty for nowhere."""
        if trial != PROBE_TRIAL or call == 0:
            return []
        place = seeds.random(self.problem.stem, "bump", call)
        return [place.random(), place.random()] if place.randrange(self.world) == rank else []


def _variant(trial: int) -> int:
    """Problems vary what they pose from trial to trial; what is timed is always the first."""
    return trial if trial < HIDDEN_TRIAL else 0


def _facts(tensor: Tensor) -> Message:
    return {"shape": list(tensor.shape), "dtype": wire_name(tensor.dtype)}
