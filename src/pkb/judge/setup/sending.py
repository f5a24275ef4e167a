"""Which calls' inputs the judge draws itself and sends, so that no rank has a seed that stands for them.

Where all inputs of a call are small, which they are at every size for a laptop, the inputs of every call are sent: in
trials, in timed blocks and under the judge's clock alike. No order shows then whether a seed would have done, and there
is nothing shorter than the data for ranks to exchange. Where inputs are too large to be sent through a socket in every
call, a secret call of one ordinary trial and of two timed blocks is sent, and the results of these are always checked.
A candidate that owns its process can tell these calls apart from others, and be honest only in them: what is drawn from
a seed in a rank has a short form, whatever the judge does.
"""

from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from weakref import WeakKeyDictionary

from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.problems.cost import Cost
from pkb.protocol.sent_inputs import DrawnArguments, draw_arguments
from pkb.trial import Trial, TrialKind

_ALWAYS_BYTES, _ONCE_BYTES = 9 << 19, 64 << 20
"""Bytes of one call's inputs on one rank up to which they are sent in every call, or in a secret one."""
_UNDER_CLOCK_BYTES = 256 << 10
"""The same for every call under the judge's clock, which sees the sending: long sends would hide what it looks for."""
_EARLY_BLOCKS, _SECRET_BLOCKS = 6, 2
"""Among the first timed blocks, the number of those in which a call of large inputs is sent."""
_CACHE_BYTES = 256 << 20


def is_sent(setup: Setup, seeds: Seeds, trial: Trial, call: int) -> bool:
    """Whether the judge sends the inputs of a call.

    A rank alone has nobody to pass a seed on to; and a control is over before there is a candidate.
    """
    if setup.world == 1 or trial.kind is TrialKind.CONTROL:
        return False
    if trial.kind is TrialKind.HIDDEN:
        return True
    if weigh_call(setup) <= (_UNDER_CLOCK_BYTES if trial.kind is TrialKind.CLOCK else _ALWAYS_BYTES):
        return True
    return call == find_secret_call(setup, seeds, trial)


def find_secret_call(setup: Setup, seeds: Seeds, trial: Trial) -> int | None:
    """Return the call of a trial that is sent though inputs are large; None for most trials."""
    stem = setup.problem.stem
    if setup.world == 1 or not _ALWAYS_BYTES < weigh_call(setup) <= _ONCE_BYTES:
        return None
    if trial.kind is TrialKind.CHECK:
        chosen = seeds.random(stem, "sent trial").randrange(setup.trials)
        return seeds.random(stem, "sent call").randrange(setup.calls) if trial.index == chosen else None
    if trial.kind is TrialKind.TIMED:
        blocks = seeds.random(stem, "sent blocks").sample(range(1, _EARLY_BLOCKS + 1), _SECRET_BLOCKS)
        # Every block has a first two calls, whatever their number.
        return seeds.random(stem, "sent call", trial.index).randrange(2) if trial.index in blocks else None
    return None


@lru_cache(maxsize=64)
def weigh_call(setup: Setup) -> float:
    """Return about the bytes of one call's inputs on the rank with most: the least that has to be read and written."""
    costs: list[Cost] = [setup.problem.cost(setup.case(rank, _POSED)) for rank in range(setup.world)]
    return max(cost.hbm for cost in costs)


_POSED = Trial(TrialKind.TIMED)
Key = tuple[Setup, Trial, int, int]
Bump = tuple[float, float] | None
"""Where one element is changed."""


class _Cache:
    """Drawn arguments, the latest kept: reference, oracle and several candidates need the same ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, DrawnArguments] = OrderedDict()
        self._nbytes = 0
        self._lock = Lock()

    def find(self, key: Key) -> DrawnArguments | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def add(self, key: Key, drawn: DrawnArguments) -> None:
        with self._lock:
            self._kept[key] = drawn
            self._nbytes += drawn.nbytes
            while self._nbytes > _CACHE_BYTES:
                self._nbytes -= self._kept.popitem(last=False)[1].nbytes


_caches: WeakKeyDictionary[Seeds, _Cache] = WeakKeyDictionary()


def draw_call(
    setup: Setup, seeds: Seeds, trial: Trial, call: int, rank: int, own: tuple[int, int], bump: Bump
) -> DrawnArguments:
    """Draw a call's arguments in the judge, from the rank's own seed and the shared one."""
    cache = _caches.setdefault(seeds, _Cache())
    key = (replace(setup, calls=1, state="", without=""), trial, call, rank)
    drawn = cache.find(key)
    if drawn is None:
        seed, shared = own
        case = replace(setup.case(rank, trial), seed=seed, shared_seed=shared)
        drawn = DrawnArguments.take_apart(draw_arguments(setup.problem, case, bump))
        cache.add(key, drawn)
    return drawn
