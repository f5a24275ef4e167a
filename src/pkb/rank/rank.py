"""What runs inside one rank: load a solution, draw inputs from the judge's seeds, call it, hand back raw bytes.

In a candidate's world this process belongs to the candidate from `load` on. Nothing here decides anything.
"""

import contextlib
import gc
import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pkb.platforms import Platform, platforms
from pkb.problems.case import Case
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.problems.sound_weights import held_by
from pkb.problems.suite import load_file
from pkb.protocol.channel import Channel, Message
from pkb.protocol.digest import digests
from pkb.protocol.spot_check import excerpted, parts
from pkb.rank.bootstrap import entry_of, import_candidate, join, settle
from pkb.rank.call import Call
from pkb.rank.error_report import describe_error
from pkb.rank.extensions import install
from pkb.rank.faults import faulty
from pkb.rank.inductor import compile_solution, stop_compile_workers
from pkb.rank.model_faults import operations
from pkb.rank.oracle import in_float64, widened
from pkb.rank.profilers import PROFILERS
from pkb.rank.stopwatch import Stopwatch, poison
from pkb.rank.tripwires import Tally, Watch
from pkb.rank.warm_kernels import exercise


class Rank:
    def __init__(self, order: Message, rank: int, channel: Channel, listener_fd: int | None):
        self.rank, self.world = rank, order["size"]
        self.channel = channel
        self.platform: Platform = platforms()[order["platform"]]
        self.folder = Path(order["folder"]) / f"rank-{rank}"
        settle(self.folder, order["memory"])
        self._enter(order, listener_fd)
        self.entry: Any = None
        """What the candidate's file defines; None where the problem's own is used."""
        self.solution: Callable[..., Any] = _nothing_loaded
        self.finish: Callable[[Any], Callable[..., Any]] = _as_it_is
        """What is made of a solution before it is called."""
        self.built: Any = None
        """What the solution was last built from, where it has to be built."""
        self.watch: Watch | None = None
        """In a candidate's world, from just before it is imported."""
        self.epochs = False
        self.held: list[list[Tensor]] = []
        """Results that the judge may ask for, call by call."""
        self.first: list[Tensor] = []
        """What the first call of all returned."""
        self.calls: list[Call] = []
        self.worn: list[Call] = []
        """Those of the last trial, for their memory."""
        self.pads: list[Tensor] = []
        """What lies between the calls' arguments."""

    @cached_property
    def stopwatch(self) -> Stopwatch:
        """Made on first use, on all ranks together: its barrier needs a rendezvous."""
        with self.watch.asleep() if self.watch else contextlib.nullcontext():
            return Stopwatch(self.platform, self.world, self.device)

    def _enter(self, order: Message, listener_fd: int | None) -> None:
        self.device = self.platform.enter(self.rank, self.world, Path(order["shared"]))
        join(self.platform.process_group, self.rank, self.world, order["port"], listener_fd)
        if self.device.type != "cpu":
            exercise(self.device)
            self.platform.tidy()

    def serve(self) -> None:
        self.channel.send({"ready": True})
        while (message := self.channel.receive())["do"] != "leave":
            try:
                answer, leaves = getattr(self, message.pop("do"))(**message)
            except Exception as error:
                answer, leaves = {"error": describe_error(error)}, []
            self.channel.send(answer, leaves)

    def load(
        self, problem: str, candidate: str = "", compiled: str = "", extensions: Message | None = None
    ) -> tuple[Message, list[Tensor]]:
        """Take `solution` from a candidate's file, or from the problem itself, as it is or compiled."""
        self.problem: Problem = load_file(Path(problem))
        if extensions:
            install(home=self.folder, **extensions)
        if candidate:
            # What the reference was here for is over.
            gc.collect()
            self.problem = self.problem.sealed()
            self.watch = Watch()
            module = import_candidate(Path(candidate))
            self.entry, self.epochs = entry_of(module, self.problem.entry), getattr(module, "SIGNALS", "") == "epochs"
        elif not compiled:
            # As in a candidate's ranks, where counting costs each collective a moment.
            Tally()
        self.finish = partial(compile_solution, baseline=compiled) if compiled else _as_it_is
        self._finish_loading()
        return {}, []

    def _finish_loading(self) -> None:
        self.built = None
        if not self.problem.builds:
            self.solution = self.finish(self.entry or self.problem.solution)

    def hold(self, case: Message, recipe: Message) -> tuple[Message, list[Tensor]]:
        """The names and shapes of what a model holds, once it is built."""
        return {"held": held_by(self.problem.built(self.entry, self._case(case, {}), recipe))}, []

    def load_mutant(self, problem: str, name: str, integers: bool = False) -> tuple[Message, list[Tensor]]:
        """Take one of the problem's own wrong variants, or its solution with a fault planted in it."""
        self.problem = load_file(Path(problem))
        self.entry = self.problem.mutants.get(name)
        self.finish = _as_it_is if self.entry else partial(faulty, name=name, integers=integers)
        self._finish_loading()
        return {}, []

    def prepare(
        self,
        case: Message,
        calls: list[Message],
        oracle: bool = False,
        recipe: Message | None = None,
        wear: bool = False,
        given: list[list[Message]] | None = None,
        pads: Sequence[int] = (),
    ) -> tuple[Message, list[Tensor]]:
        """Build the solution, where a recipe says how, and draw the inputs of the next calls.

        Or take those that are `given`; to `wear`, in the memory of the last trial's; beside `pads` of so many bytes.
        """
        for call, tensors in zip(calls, given or [], strict=False):
            call["given"] = [self._received(tensor) for tensor in tensors]
        self.held = []
        if recipe:
            self._build(case, recipe, oracle)
        if self.watch:
            self.watch.spoil()
        self.calls, self.pads = [], []
        self.pads = [torch.empty(count, dtype=torch.uint8, device=self.device) for count in pads]
        self._draw(case, calls, oracle)
        if wear:
            before = self.worn or self.calls
            self.calls = [call.wear(old.args) for call, old in zip(self.calls, before, strict=True)]
        self.platform.synchronize()
        return {}, []

    def _draw(self, case: Message, calls: list[Message], oracle: bool = False) -> None:
        self.calls = []
        self.calls = [self._drawn(case, call, oracle) for call in calls]

    def _received(self, tensor: Message) -> Tensor:
        return self.channel.receive_tensor(tensor["shape"], getattr(torch, tensor["dtype"]), math.inf)

    def _build(self, case: Message, recipe: Message, oracle: bool) -> None:
        wanted = (case["size"], case["dtype"], recipe, oracle)
        if wanted != self.built:
            # The last one makes room first.
            self.built, self.solution = None, _nothing_loaded
            model = self.problem.built(self.entry, self._case(case, {}), recipe)
            self.solution = torch.no_grad()(self.finish(widened(model) if oracle else model))
            self.built = wanted

    def run(self, count: bool = False) -> tuple[Message, list[Tensor]]:
        """The prepared calls, back to back; what they returned is held. With `count`, library calls are counted."""
        outputs: list[Any] = []
        counted = self.watch.counting() if self.watch and count else contextlib.nullcontext()
        with in_float64(self.calls[0].case.dtype) if self.calls[0].oracle else counted:
            for call in self.calls:
                self.platform.delay(call.delay)
                poison(outputs[-1:], self.device)
                call.begin()
                outputs.append(self.solution(*call.args))
            left = self.calls[-1].left(outputs[-1])
        self.platform.delay(0.0)
        self.platform.synchronize()
        self.held = [[] for _ in outputs]
        results = [
            call.result(output, outputs[:k], self.held[k])
            for k, (call, output) in enumerate(zip(self.calls, outputs, strict=True))
        ]
        # What a result lies in is not ours to write to.
        returned = any(leaf["aliases"] for result in results for leaf in result["leaves"])
        # Of a candidate's. A reference needs the room.
        self.worn, self.calls = self.calls if self.watch and not returned else [], []
        self.first = self.first or (self.held[0] if self.watch else [])
        self.held[-1] = left or self.held[-1]
        return {"results": results}, []

    def hand_over(self, pieces: list[list[list[list[int]] | None]]) -> tuple[Message, list[Tensor]]:
        """The tensors held, or pieces of them, call by call."""
        pairs = [pair for call in zip(self.held, pieces, strict=True) for pair in zip(*call, strict=True)]
        return {}, [excerpted(tensor, wanted) for tensor, wanted in pairs]

    def operations(self) -> tuple[Message, list[Tensor]]:
        """Operations of the first prepared call that could be left out."""
        return {"operations": operations(self.solution, *self.calls[0].args)}, []

    def again(self) -> tuple[Message, list[Tensor]]:
        """Hold what the first call of all returned, as it is now."""
        self.held = [self.first]
        return {}, []

    def conduct(self) -> tuple[Message, list[Tensor]]:
        """What there was to notice since the candidate was loaded."""
        assert self.watch, "only candidates are watched"
        stop_compile_workers()
        with self.watch.asleep():
            return self.watch.report() | {"epochs": self.epochs}, []

    def let_go(self) -> tuple[Message, list[Tensor]]:
        """Hand back what others may need: leaving takes a while."""
        self.calls, self.worn, self.held, self.first, self.pads = [], [], [], [], []
        self.built, self.solution = None, _nothing_loaded
        if "stopwatch" in vars(self):
            self.stopwatch.kept = {}
        stop_compile_workers()
        self.platform.tidy()
        return {}, []

    def weigh(self) -> tuple[Message, list[Tensor]]:
        """What the prepared calls and the last output weigh, and how much this rank's device could still take."""
        clock = self.stopwatch.clock
        heaviest = max(call.argument_bytes() for call in self.calls)
        own = {"argument_bytes": heaviest, "result_bytes": self.stopwatch.output_bytes}
        return {**own, "cache_bytes": clock.cache_bytes, "free_bytes": clock.free_bytes()}, []

    def warm(self, count: int) -> tuple[Message, list[Tensor]]:
        """So many calls on the prepared arguments, for compilers, caches and clocks to settle."""
        self.stopwatch.warm(self.calls, self.solution, count)
        return {}, []

    def time(self, spin_s: float, flush: bool, keep_from: int) -> tuple[Message, list[Tensor]]:
        """Time every prepared call; outputs wait for `kept`."""
        return self.stopwatch.block(self.calls, self.solution, spin_s, flush, keep_from), []

    def kept(self, call: int) -> tuple[Message, list[Tensor]]:
        """Hold what one call of the last timed block returned."""
        self.held = [[]]
        return {"results": [self.calls[call].result(self.stopwatch.kept[call], [], self.held[0])]}, []

    def stretch(self, case: Message, calls: list[Message], spin_s: float) -> tuple[Message, list[Tensor]]:
        """Draw inputs and make calls, without a clock: the judge holds its own. Outputs wait for `digests`, `kept`."""
        self.stopwatch.kept = {}
        self._draw(case, calls)
        self.stopwatch.stretch(self.calls, self.solution, spin_s)
        return {}, []

    def digests(self, key: int) -> tuple[Message, list[Tensor]]:
        """What stands for all results of the stretch."""
        results = [call.leaves(self.stopwatch.kept[k])[1] for k, call in enumerate(self.calls)]
        pieces = [[parts(leaf) for leaf in leaves] for leaves in results]
        found = iter(digests([part for call in pieces for leaf in call for part in leaf], key))
        return {"digests": [[[next(found) for _ in leaf] for leaf in call] for call in pieces]}, []

    def profile(self, tool: str) -> tuple[Message, list[Tensor]]:
        """The prepared calls under a profiler, which leaves what it saw in the rank's folder."""
        calls = [partial(self.solution, *call.args) for call in self.calls]
        PROFILERS[tool](calls, self.platform, self.folder)
        self.calls = []
        return {}, []

    def _drawn(self, shape: Message, call: Message, oracle: bool) -> Call:
        seeds = {name: call.pop(name) for name in ("seed", "shared_seed")}
        device = self.device if shape["on_host"] else None
        return Call.drawn(self.problem, self._case(shape, seeds), oracle=oracle, device=device, **call)

    def _case(self, shape: Message, seeds: Message) -> Case:
        size, device = Size(**shape["size"]), "cpu" if shape["on_host"] else self.device
        rest = {key: value for key, value in shape.items() if key not in ("size", "dtype", "on_host")}
        return self.problem.case(size, shape["dtype"], self.world, self.rank, device, **rest, **seeds)


def _as_it_is(solution: Any) -> Any:
    return solution


def _nothing_loaded(*_: Any) -> None:
    raise RuntimeError("run before load")
