"""Profile a candidate's calls: merge the traces of all ranks, and summarize them.

Traces come from the candidate's processes: they are parsed with care, and only the check of vendor kernels uses them.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pkb.base.atomic import write_whole
from pkb.base.plain_files import FileTooLarge, read_plain_file
from pkb.base.printable import clean_line
from pkb.judge.correctness.orders import draw_inputs
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World
from pkb.protocol.messages import RunProfiler
from pkb.protocol.profile_files import WARM_UP_CALLS, name_trace
from pkb.record import KernelTime, ProfileSummary
from pkb.trial import Trial, TrialKind

CALLS = 3
_PROFILED_TRIAL = Trial(TrialKind.CHECK)
_TRACE_BYTES = 128 << 20
"""The most bytes of all ranks' traces together; in memory, JSON takes up to twenty times its size."""
_TOP = 20
_NAME_LENGTH = 300
_DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_SPAN, _FLOW, _NAMING = "X", ("s", "t", "f"), "M"
"""Phases of events: a span of time, an arrow between two spans, a name of a thread."""

Chrome = dict[str, Any]
"""A trace in Chrome's format, or one event of it."""


@dataclass(frozen=True, slots=True)
class Event:
    phase: str
    name: str
    category: str
    start: int
    """Nanoseconds since 1970."""
    length: int
    thread: tuple[str, str]
    """Process and thread, or device and stream."""
    id: str
    """The number that both ends of a flow share."""
    args: Chrome

    @property
    def end(self) -> int:
        return self.start + self.length


Trace = list[Event]


@dataclass(frozen=True)
class Profile:
    summary: ProfileSummary
    trace: Chrome | None
    """The trace of all ranks; None when no rank left a readable one."""

    def write(self, path: Path) -> None:
        if self.trace:
            write_whole(path, json.dumps(self.trace))


def take_profile(world: World, setup: Setup, seeds: Seeds) -> Profile:
    """Profile a few more calls of a loaded candidate with torch's profiler."""
    run_profiler(world, setup, seeds, "torch")
    traces, notes = _collect_traces(world.folder, world.size)
    return make_profile(traces, notes)


def make_profile(traces: dict[int, Trace], notes: list[str]) -> Profile:
    return Profile(summarize(traces, notes), merge(traces) if traces else None)


def run_profiler(world: World, setup: Setup, seeds: Seeds, tool: str) -> None:
    several = replace(setup, calls=WARM_UP_CALLS + CALLS)
    draw_inputs(world, several, seeds, _PROFILED_TRIAL)
    world.ask(RunProfiler(tool), "profiling", setup.limits.trial_s)


def _collect_traces(folder: Path, world: int) -> tuple[dict[int, Trace], list[str]]:
    """Return the readable traces by rank, and a note for each rank that left none."""
    traces: dict[int, Trace] = {}
    notes = []
    for rank in range(world):
        try:
            content = read_plain_file(folder / name_trace(rank), _TRACE_BYTES // world)
            traces[rank] = parse_trace(content)
        except FileTooLarge as error:
            notes.append(f"rank {rank} left no readable trace: {error}; choose a smaller --size or --nproc")
        except OSError as error:
            notes.append(f"rank {rank} left no readable trace: {error.strerror}")
        except (ValueError, RecursionError, MemoryError) as error:
            notes.append(f"rank {rank} left no readable trace: {error}")
    return traces, notes


def parse_trace(content: bytes) -> Trace:
    """Return the well-formed events of one rank. Raise ValueError when there are none."""
    if not content:
        raise ValueError("it is empty")
    found = json.loads(content, parse_constant=lambda _: None)
    if not isinstance(found, dict) or not isinstance(found.get("traceEvents"), list):
        raise ValueError("it is no Chrome trace")
    base = _parse_nanoseconds(found.get("baseTimeNanoseconds"), 1)
    if base is None:
        raise ValueError("it has no baseTimeNanoseconds")
    trace = [event for raw in found["traceEvents"] if (event := _parse_event(raw, base))]
    if not any(event.phase == _SPAN for event in trace):
        raise ValueError("it has no events with a beginning and an end")
    return trace


def _parse_event(raw: Any, base: int) -> Event | None:
    if not isinstance(raw, dict) or raw.get("ph") not in (_SPAN, *_FLOW, _NAMING) or raw.get("cat") == "Trace":
        return None
    start, length = _parse_nanoseconds(raw.get("ts"), 1000), _parse_nanoseconds(raw.get("dur", 0), 1000)
    if start is None or length is None or length < 0:
        return None
    return Event(
        phase=raw["ph"],
        name=_parse_text(raw.get("name")),
        category=_parse_text(raw.get("cat")),
        start=base + start,
        length=length,
        thread=(_parse_text(raw.get("pid")), _parse_text(raw.get("tid"))),
        id=_parse_text(raw.get("id")),
        args=_parse_args(raw.get("args")),
    )


def _parse_nanoseconds(value: Any, unit: int) -> int | None:
    """Return a time in nanoseconds; None for what is no number, or out of range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
        return None
    return round(value * unit)


def _parse_text(value: Any) -> str:
    words = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return clean_line(words, _NAME_LENGTH)


def _parse_args(value: Any) -> Chrome:
    """Return one level of plain values, which every viewer can show."""
    if not isinstance(value, dict):
        return {}
    return {_parse_text(key): v if _is_plain(v) else _parse_text(v) for key, v in value.items()}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))


class _Numbers(dict[Any, int]):
    """Numbers keys from 1 on, in the order of their first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self) + 1
        return self[key]


def merge(traces: dict[int, Trace]) -> Chrome:
    """Return one trace with a process per rank, in time since the first event of all ranks."""
    zero = min(event.start for trace in traces.values() for event in trace if event.phase == _SPAN)
    threads, flows = _Numbers(), _Numbers()
    merged: list[Chrome] = []
    for rank, trace in sorted(traces.items()):
        merged += [_make_name_event("process_name", rank, name=f"rank {rank}")]
        merged += [_make_name_event("process_sort_index", rank, sort_index=rank)]
        timed = sorted((event for event in trace if event.phase != _NAMING), key=lambda e: e.start)
        merged += [_place_event(event, rank, zero, threads, flows) for event in timed]
        names = {event.thread: event.args.get("name") for event in trace if _is_thread_name(event)}
        used = [thread for thread in names if (rank, thread) in threads]
        merged += [_make_name_event("thread_name", rank, threads[rank, thread], name=names[thread]) for thread in used]
    return {"displayTimeUnit": "ms", "baseTimeNanoseconds": zero, "traceEvents": merged}


def _is_thread_name(event: Event) -> bool:
    return event.phase == _NAMING and event.name == "thread_name"


def _number_process(rank: int) -> int:
    # Perfetto treats process 0 specially.
    return rank + 1


def _make_name_event(what: str, rank: int, tid: int = 0, **args: Any) -> Chrome:
    return {"ph": _NAMING, "name": what, "pid": _number_process(rank), "tid": tid, "args": args}


def _place_event(event: Event, rank: int, zero: int, threads: _Numbers, flows: _Numbers) -> Chrome:
    placed = {"ph": event.phase, "name": event.name, "cat": event.category, "ts": (event.start - zero) / 1000}
    placed |= {"pid": _number_process(rank), "tid": threads[rank, event.thread], "args": event.args}
    if event.phase == _SPAN:
        return placed | {"dur": event.length / 1000}
    placed["id"] = flows[rank, event.category, event.id]
    # A flow ends at the event around it.
    return placed | ({"bp": "e"} if event.phase == "f" else {})


def summarize(traces: dict[int, Trace], notes: Sequence[str] = ()) -> ProfileSummary:
    """Return the longest kernels over all ranks, and each rank's share of time without a kernel."""
    spans = {rank: [event for event in trace if event.phase == _SPAN] for rank, trace in traces.items()}
    work = {rank: [event for event in events if event.category in _DEVICE_WORK] for rank, events in spans.items()}
    on_device = any(work.values())
    if not on_device:
        work = {rank: _keep_outermost(events) for rank, events in spans.items()}
    return ProfileSummary(
        of="device kernels" if on_device else "cpu operators",
        calls=CALLS,
        events=sum(map(len, spans.values())),
        top=_find_longest([event for events in work.values() for event in events]),
        idle={str(rank): _compute_idle_share(spans[rank], work[rank]) for rank in sorted(traces)},
        notes=list(notes),
    )


def _keep_outermost(spans: Iterable[Event]) -> list[Event]:
    """Return the operators that no other operator called, on the thread of the first one."""
    operators = sorted((e for e in spans if e.category == "cpu_op"), key=lambda e: (e.start, -e.end))
    kept: list[Event] = []
    for event in operators:
        if not kept or (event.thread == kept[0].thread and event.start >= kept[-1].end):
            kept.append(event)
    return kept


def _find_longest(work: list[Event]) -> list[KernelTime]:
    lengths: dict[str, list[int]] = defaultdict(list)
    for event in work:
        lengths[event.name].append(event.length)
    total = sum(event.length for event in work) or 1
    longest = sorted(lengths.items(), key=lambda item: (-sum(item[1]), item[0]))[:_TOP]
    return [KernelTime(name, len(each), sum(each) / 1000, sum(each) / total) for name, each in longest]


def _compute_idle_share(spans: list[Event], work: list[Event]) -> float:
    """Return the share of the time from the first to the last event in which none of `work` ran."""
    whole = max(event.end for event in spans) - min(event.start for event in spans)
    return 1 - _measure_coverage(work) / whole if whole else 1.0


def _measure_coverage(work: list[Event]) -> int:
    """Return the nanoseconds in which at least one of the events ran."""
    covered = until = 0
    for event in sorted(work, key=lambda e: e.start):
        covered += max(0, event.end - max(event.start, until))
        until = max(until, event.end)
    return covered
