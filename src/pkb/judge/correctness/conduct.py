"""What the judge makes of a candidate's conduct between results."""

from collections import Counter
from typing import Any

import torch

from pkb.base.tensors import view_bytes
from pkb.failure import Failure
from pkb.judge.correctness.check import Wrong
from pkb.judge.correctness.reference import Reference
from pkb.judge.correctness.results import Outputs, handed_over
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World, garbled
from pkb.protocol.channel import FORGED, Message
from pkb.record import Verdict
from pkb.settings import Track

_ALLOWED_FROM_SCRATCH = ("dist.barrier", "c10d.barrier")
"""They order, and move no data."""
_COMPILER = "torch/_inductor/compile_worker"


def check_conduct(world: World, track: Track, seconds: float) -> dict[str, int]:
    """Raise for what no candidate may do, or none of its track; the library calls that were seen, on all ranks."""
    helpers = world.helpers()
    if strangers := [line for line in helpers if _COMPILER not in line]:
        raise left_behind(strangers)
    answers = world.ask({"do": "conduct"}, "the look at its conduct", seconds)
    # Meanwhile torch.compile's own have gone: whoever is still there only bears their name.
    if helpers and (left := world.helpers()):
        raise left_behind(left)
    calls: Counter[str] = Counter()
    for rank, answer in enumerate(answers):
        try:
            _check(answer, rank)
            calls.update({str(name): int(count) for name, count in answer["library_calls"].items()})
        except FORGED as error:
            raise garbled(world, rank, "the look at its conduct") from error
    barred = sorted(name for name in calls if name not in _ALLOWED_FROM_SCRATCH)
    if track is Track.SCRATCH and barred:
        names = ", ".join(barred)
        raise _cheat("library-call", f"called {names} in the scratch track; write it yourself, or use --track any")
    return dict(calls)


def _check(answer: Message, rank: int) -> None:
    if patched := answer["patched"]:
        names = ", ".join(map(str, patched))
        raise _cheat("patched", f"rank {rank} replaced {names}; leave what is not yours as it is", rank=rank)
    if threads := answer["threads"]:
        raise _cheat("threads", f"rank {rank} left the thread {threads[0]} running; finish inside the call", rank=rank)
    if answer["raised_signals"] and not answer["epochs"]:
        raise Wrong(
            f"rank {rank} left {answer['raised_signals']} words of its signal pads raised; take each down that you "
            'raise, or say SIGNALS = "epochs" in the file if they count',
            check="signal-pads",
            rank=rank,
        )


def check_kept(world: World, setup: Setup, seeds: Seeds, reference: Reference, earlier: Outputs) -> None:
    """Raise if what the first call of all returned is not what it was when it was handed over."""
    world.ask({"do": "again"}, "its earlier results", setup.limits.trial_s)
    results = [reference.calls[0, 0, rank].result for rank in range(setup.world)]
    for (_, rank), tensors in handed_over(world, setup, seeds, 0, results).items():
        for k, (now, before) in enumerate(zip(tensors, earlier[0, rank], strict=True)):
            if not torch.equal(view_bytes(now), view_bytes(before)):
                raise Wrong(
                    f"rank {rank}, output {k}: a result changed after it was returned; every call must return memory "
                    "of its own, and be done with it",
                    check="kept",
                    rank=rank,
                    output=k,
                )


def left_behind(commands: list[str]) -> Failure:
    reason = f"left a process running ({commands[0]}); a kernel must finish its work inside the call"
    return _cheat("left-process", reason, processes=commands)


def _cheat(check: str, reason: str, **evidence: Any) -> Failure:
    return Failure(Verdict.CHEAT, reason, check=check, **evidence)
