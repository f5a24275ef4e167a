"""What runs inside one rank: load a solution, draw inputs from the judge's seeds, call it, send raw bytes back.

In a candidate's world this process belongs to the candidate once it is loaded. Nothing here decides anything.
"""

import contextlib
import gc
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pkb.base.schema import dump
from pkb.base.tensors import view_bytes
from pkb.checks import Check, list_checks
from pkb.platforms import Platform, load_platforms
from pkb.problems.case import Case
from pkb.problems.problem import Problem
from pkb.problems.published_draws import draw_from as _draw_from  # noqa: F401
from pkb.problems.sound_weights import find_held_shapes
from pkb.problems.suite import load_file
from pkb.protocol import messages as m
from pkb.protocol.channel import Channel
from pkb.protocol.digest import digest_all
from pkb.protocol.profile_files import TRACE, name_trace
from pkb.protocol.sent_inputs import DrawnArguments
from pkb.protocol.spot_check import cut_pieces, split_parts
from pkb.published_lib import offer_modules
from pkb.rank.bootstrap import enter_folder, find_entry, import_candidate, join_group, share_memory_without_tracker
from pkb.rank.call import Call, ResultCopy
from pkb.rank.candidate_observer import CandidateObserver, CollectiveCounter
from pkb.rank.error_report import describe_error
from pkb.rank.extensions import install_loaders
from pkb.rank.faults import plant_fault
from pkb.rank.faults.model_faults import list_skippable_operations
from pkb.rank.inductor import compile_solution, stop_compile_workers
from pkb.rank.observers.operators import slow_down_launches
from pkb.rank.observers.thread_delay import ThreadDelay
from pkb.rank.oracle import compute_in_float64, widen
from pkb.rank.profilers import PROFILERS
from pkb.rank.stopwatch import Stopwatch, poison
from pkb.rank.sums import SumOverride
from pkb.rank.warm_kernels import warm_up_kernels

Handler = Callable[["Rank", Any], m.Answer | None]
_COPIED_BYTES = 256 << 20
"""Bytes of the results of one trial that are copied whole right behind their calls."""


class Rank:
    def __init__(self, order: m.Spawn, rank: int, port: int, channel: Channel, listener_fd: int | None):
        self.rank, self.world = rank, order.size
        self.channel = channel
        self.platform: Platform = load_platforms()[order.platform]
        self.world_folder = Path(order.folder)
        self.folder = Path(order.work) / f"rank-{rank}"
        enter_folder(self.folder, order.memory)
        self._enter(order, port, listener_fd)
        self.entry: Any = None
        """What the candidate's file defines; None where the problem's own solution is used."""
        self.solution: Callable[..., Any] = _raise_not_loaded
        self.finish: Callable[[Any], Callable[..., Any]] = _return_unchanged
        """Makes of a solution what is called: compiles it, or plants a fault in it."""
        self.built_from: Any = None
        """What the solution was last built from, where it has to be built."""
        self.observer: CandidateObserver | None = None
        """In a candidate's world, from just before the candidate is imported."""
        self.thread_delay = ThreadDelay()
        self.checks: list[Check] = []
        self.held: list[list[Tensor]] = []
        """Results that the judge may ask for, call by call."""
        self.first: list[Tensor] = []
        """What the very first call returned."""
        self.calls: list[Call] = []
        self.last_calls: list[Call] = []
        """The calls of the last trial, whose memory the next one may reuse."""
        self.pads: list[Tensor] = []
        """Memory between the calls' arguments."""

    @cached_property
    def stopwatch(self) -> Stopwatch:
        """Made on first use, on all ranks together: its barrier needs a rendezvous."""
        with self.observer.pause() if self.observer else contextlib.nullcontext():
            return Stopwatch(self.platform, self.world, self.device)

    def _enter(self, order: m.Spawn, port: int, listener_fd: int | None) -> None:
        self.device = self.platform.enter(self.rank, self.world, Path(order.shared))
        join_group(self.platform.process_group, self.rank, self.world, port, listener_fd)
        if self.device.type != "cpu":
            warm_up_kernels(self.device)
            self.platform.free_unused_memory()

    def serve(self) -> None:
        """Carry out orders until the judge says Leave."""
        self.channel.send(m.encode(m.Ready()))
        while not isinstance(order := m.decode_order(header := self.channel.receive()), m.Leave):
            tensors: Sequence[Tensor] = ()
            try:
                answer = HANDLERS[type(order)](self, order) or m.Answer()
                tensors = self._cut_pieces(order.pieces) if isinstance(order, m.SendTensors) else ()
            except Exception as error:
                answer = describe_error(error)
            self.channel.send(m.encode(answer, header[m.ORDER_NUMBER]), tensors)

    def load(self, order: m.LoadSolution) -> None:
        self.problem: Problem = load_file(Path(order.problem))
        if order.extensions:
            install_loaders(order.extensions, home=self.folder)
        if order.candidate:
            self._load_candidate(Path(order.candidate), order)
        elif not order.compiled:
            # As in a candidate's ranks, where counting costs each collective a moment, and recording each launch.
            CollectiveCounter()
            if order.scratch and self.platform.has_kernel_profiler:
                slow_down_launches()
        self.finish = partial(compile_solution, baseline=order.compiled) if order.compiled else _return_unchanged
        self._finish_loading()

    def _load_candidate(self, file: Path, order: m.LoadSolution) -> None:
        # Free what the reference used in this process.
        gc.collect()
        self.problem = self.problem.seal()
        compiled = [order.extensions.libraries, order.extensions.build_folder] if order.extensions else []
        self.observer = CandidateObserver(order.scratch, [*map(Path, compiled)], self.folder.parent)
        self.checks = [check(self.observer) for check in list_checks()]
        self.thread_delay.install()
        share_memory_without_tracker()
        offer_modules(self.problem.helper_folder)
        module = import_candidate(file, self.folder.parent)
        self.observer.entry_module = module
        self.entry = find_entry(module, self.problem.entry)

    def load_mutant(self, order: m.LoadMutant) -> None:
        self.problem = load_file(Path(order.problem))
        self.entry = self._import_entry(Path(order.file)) if order.file else self.problem.mutants.get(order.name)
        plant = partial(plant_fault, name=order.name, integers=order.integers)
        self.finish = _return_unchanged if self.entry else plant
        self._finish_loading()

    def _import_entry(self, file: Path) -> Any:
        return find_entry(import_candidate(file), self.problem.entry)

    def _finish_loading(self) -> None:
        self.built_from = None
        if not self.problem.builds:
            self.solution = self.finish(self.entry or self.problem.solution)

    def build_model(self, order: m.BuildModel) -> m.HeldTensors:
        model = self.problem.build(self.entry, self._pose_case(order.case), order.recipe)
        return m.HeldTensors(find_held_shapes(model))

    def draw_inputs(self, order: m.DrawInputs) -> None:
        sent = self._receive_arguments(order.sent)
        self.held = []
        if order.recipe:
            self._build(order.case, order.recipe, order.oracle)
        if self.observer:
            self.observer.poison_symmetric_buffers()
        self.calls, self.pads = [], []
        self.pads = [torch.empty(count, dtype=torch.uint8, device=self.device) for count in order.pads]
        self._draw_calls(order.case, order.calls, order.oracle, sent)
        if order.reuse_memory:
            earlier = self.last_calls or self.calls
            self.calls = [call.reuse_memory(old.args) for call, old in zip(self.calls, earlier, strict=True)]
        self.platform.synchronize()

    def _draw_calls(
        self,
        case: m.CaseOrder,
        calls: Sequence[m.CallOrder],
        oracle: bool = False,
        sent: Sequence[DrawnArguments | None] = (),
    ) -> None:
        self.calls = []
        pairs = zip_longest(calls, sent)
        self.calls = [self._draw_call(case, call, oracle, own) for call, own in pairs]

    def _draw_call(self, case: m.CaseOrder, call: m.CallOrder, oracle: bool, sent: DrawnArguments | None) -> Call:
        posed = self._pose_case(case, seed=call.seed, shared_seed=call.shared_seed)
        return Call.draw(self.problem, posed, delay=call.delay, oracle=oracle, bump=call.bump, sent=sent)

    def _receive_arguments(self, sent: Sequence[m.SentArguments | None]) -> list[DrawnArguments | None]:
        """Receive the arguments that follow an order, by call."""
        return [DrawnArguments(call.form, [*map(self._receive, call.tensors)]) if call else None for call in sent]

    def _receive(self, tensor: m.TensorSpec) -> Tensor:
        return self.channel.receive_tensor(tensor.shape, getattr(torch, tensor.dtype), math.inf)

    def _build(self, case: m.CaseOrder, recipe: m.Recipe, oracle: bool) -> None:
        wanted = (case.size, case.dtype, recipe, oracle)
        if wanted != self.built_from:
            # Free the last model first.
            self.built_from, self.solution = None, _raise_not_loaded
            model = self.problem.build(self.entry, self._pose_case(case), recipe)
            self.solution = torch.no_grad()(self.finish(widen(model) if oracle else model))
            self.built_from = wanted

    def run_calls(self, order: m.RunCalls) -> m.CallResults:
        outputs: list[Any] = []
        copies: list[ResultCopy] = []
        count = self.observer.count_operators() if self.observer and order.count else contextlib.nullcontext()
        context = compute_in_float64(self.calls[0].case.dtype) if self.calls[0].oracle else count
        with context, SumOverride(order.sums) as override:
            for call in self.calls:
                self.platform.delay(call.delay)
                poison(outputs[-1:], self.device)
                self._begin_call()
                call.begin()
                with self.thread_delay.during_call():
                    outputs.append(self.solution(*call.args))
                    # Before anything waits: what is not done by now was not done inside the call.
                    copies.append(call.copy_result(outputs[-1], _COPIED_BYTES // len(self.calls)))
        self.platform.delay(0.0)
        self.platform.synchronize()
        return replace(self._hold_results(outputs, copies), has_added=override.has_added)

    def _begin_call(self) -> None:
        if self.observer:
            self.observer.begin_call()

    def _hold_results(self, outputs: list[Any], copies: list[ResultCopy]) -> m.CallResults:
        """Hold what the calls returned; `copies` were taken in the order of the device's work behind each call."""
        self.held = [[] for _ in outputs]
        results = [
            call.describe_result(output, outputs[:k], self.held[k])
            for k, (call, output) in enumerate(zip(self.calls, outputs, strict=True))
        ]
        # Memory that a result lies in is not ours to write to.
        returned = any(leaf.aliases for result in results for leaf in result.leaves)
        # Only a candidate's: a reference needs the memory.
        self.last_calls, self.calls = self.calls if self.observer and not returned else [], []
        self.first = self.first or (self.held[0] if self.observer else [])
        self.held = [copy.settle(leaves) for copy, leaves in zip(copies, self.held, strict=True)]
        return m.CallResults(results)

    def _cut_pieces(self, pieces: Sequence[Sequence[Sequence[tuple[int, int]] | None]]) -> list[Tensor]:
        pairs = [pair for call in zip(self.held, pieces, strict=True) for pair in zip(*call, strict=True)]
        # As bytes already here: what cannot be read is an error of this order, before anything is sent.
        return [view_bytes(cut_pieces(tensor, wanted)) for tensor, wanted in pairs]

    def list_operations(self, order: m.ListOperations) -> m.OperationList:
        return m.OperationList(list_skippable_operations(self.solution, *self.calls[0].args))

    def hold_first_result(self, order: m.HoldFirstResult) -> None:
        self.held = [self.first]

    def report_conduct(self, order: m.ReportConduct) -> m.ConductReport:
        assert self.observer, "only candidates are observed"
        stop_compile_workers()
        with self.observer.pause():
            return m.ConductReport({check.name: dump(check.report()) for check in self.checks})

    def release_memory(self, order: m.ReleaseMemory) -> None:
        self.calls, self.last_calls, self.held, self.first, self.pads = [], [], [], [], []
        self.built_from, self.solution = None, _raise_not_loaded
        if "stopwatch" in vars(self):
            self.stopwatch.kept = []
        stop_compile_workers()
        self.platform.free_unused_memory()

    def measure_memory(self, order: m.MeasureMemory) -> m.MemoryReport:
        clock = self.stopwatch.clock
        heaviest = max(call.argument_bytes() for call in self.calls)
        return m.MemoryReport(heaviest, self.stopwatch.output_bytes, clock.cache_bytes, clock.count_free_bytes())

    def warm_up(self, order: m.WarmUp) -> None:
        self.thread_delay.remove()
        self._begin_call()
        self.stopwatch.warm_up(self.calls, self.solution, order.count)

    def time_block(self, order: m.TimeBlock) -> m.BlockTimes:
        self._begin_call()
        return self.stopwatch.time_block(self.calls, self.solution, order.spin_s, order.flush)

    def hold_timed_result(self, order: m.HoldTimedResult) -> m.CallResults:
        self.held = [[]]
        output = self.stopwatch.kept[order.call]
        return m.CallResults([self.calls[order.call].describe_result(output, [], self.held[0])])

    def run_untimed(self, order: m.RunUntimed) -> None:
        self.stopwatch.kept = []
        self._draw_calls(order.case, order.calls, sent=self._receive_arguments(order.sent))
        self._begin_call()
        self.stopwatch.run_untimed(self.calls, self.solution, order.spin_s)

    def digest_results(self, order: m.DigestResults) -> m.DigestList:
        results = [call.list_leaves(self.stopwatch.kept[k])[1] for k, call in enumerate(self.calls)]
        pieces = [[split_parts(leaf) for leaf in leaves] for leaves in results]
        found = iter(digest_all([part for call in pieces for leaf in call for part in leaf], order.key))
        return m.DigestList([[[next(found) for _ in leaf] for leaf in call] for call in pieces])

    def run_profiler(self, order: m.RunProfiler) -> None:
        calls = [partial(self.solution, *call.args) for call in self.calls]
        PROFILERS[order.tool](calls, self.platform, self.folder)
        if (trace := self.folder / TRACE).is_file():
            # The judge sees no file that ranks make, only what they write to this one.
            shutil.copyfile(trace, self.world_folder / name_trace(self.rank))
        self.calls = []

    def _pose_case(self, order: m.CaseOrder, **seeds: int) -> Case:
        drawn = {"whole": order.whole, "outliers": order.outliers, "published": order.published}
        rest: dict[str, Any] = {"trial": order.variant, **drawn, **seeds}
        return self.problem.case(order.size, order.dtype, self.world, self.rank, self.device, **rest)


def _send_nothing_else(rank: Rank, order: m.SendTensors) -> None:
    """Answer; the tensors follow the answer."""


HANDLERS: dict[type[m.Order], Handler] = {
    m.LoadSolution: Rank.load,
    m.LoadMutant: Rank.load_mutant,
    m.BuildModel: Rank.build_model,
    m.DrawInputs: Rank.draw_inputs,
    m.RunCalls: Rank.run_calls,
    m.SendTensors: _send_nothing_else,
    m.HoldFirstResult: Rank.hold_first_result,
    m.HoldTimedResult: Rank.hold_timed_result,
    m.ListOperations: Rank.list_operations,
    m.ReportConduct: Rank.report_conduct,
    m.ReleaseMemory: Rank.release_memory,
    m.MeasureMemory: Rank.measure_memory,
    m.WarmUp: Rank.warm_up,
    m.TimeBlock: Rank.time_block,
    m.RunUntimed: Rank.run_untimed,
    m.DigestResults: Rank.digest_results,
    m.RunProfiler: Rank.run_profiler,
}
"""What a rank does for each order; a builder adds its own."""


def _return_unchanged(solution: Any) -> Any:
    return solution


def _raise_not_loaded(*_: Any) -> None:
    raise RuntimeError("run before load")
