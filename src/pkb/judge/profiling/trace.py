"""What a candidate does in its calls: the traces of all ranks as one, and their summary.

Traces come from the candidate's processes. They are read with care, and no verdict depends on them.
"""

import json
import math
import os
import stat
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World
from pkb.rank.profilers import TRACE, WARM_UP_CALLS

CALLS = 3
_PROFILED_TRIAL = 0
_TRACE_BYTES = 128 << 20
"""Of all ranks together; in memory, JSON takes up to twenty times its size."""
_TOP = 20
_NAME_LENGTH = 300
_DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_SPAN, _FLOW, _NAMING = "X", ("s", "t", "f"), "M"
"""Phases of events: with a length, an arrow between two, a name for a thread."""

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
    """Ties the ends of a flow together."""
    args: Chrome

    @property
    def end(self) -> int:
        return self.start + self.length


Trace = list[Event]


@dataclass(frozen=True)
class Profile:
    summary: dict[str, Any]
    trace: Chrome | None
    """All ranks in one; None when no rank left a readable one."""

    def write(self, path: Path) -> None:
        if self.trace:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.trace))


def take_profile(world: World, setup: Setup, seeds: Seeds) -> Profile:
    """Profile a few more calls of a loaded candidate with torch's profiler."""
    run_profiled(world, setup, seeds, "torch")
    traces, notes = _collect(world.folder, world.size)
    return profile_of(traces, notes)


def profile_of(traces: dict[int, Trace], notes: list[str]) -> Profile:
    return Profile(summary(traces) | {"notes": notes}, merge(traces) if traces else None)


def run_profiled(world: World, setup: Setup, seeds: Seeds, tool: str) -> None:
    several = replace(setup, calls=WARM_UP_CALLS + CALLS)
    several.prepare(world, seeds, _PROFILED_TRIAL)
    world.ask({"do": "profile", "tool": tool}, "profiling", setup.limits.trial_s)


def _collect(folder: Path, world: int) -> tuple[dict[int, Trace], list[str]]:
    """Readable traces by rank, and a note for each rank that left none."""
    traces: dict[int, Trace] = {}
    notes = []
    for rank in range(world):
        try:
            traces[rank] = parse(_content(folder / f"rank-{rank}" / TRACE, _TRACE_BYTES // world))
        except OSError as error:
            notes.append(f"rank {rank} left no readable trace: {error.strerror}")
        except (ValueError, RecursionError, MemoryError) as error:
            notes.append(f"rank {rank} left no readable trace: {error}")
    return traces, notes


def _content(path: Path, limit: int) -> bytes:
    # Its owner may have put a link or a pipe there.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit >> 20} MiB; choose a smaller --size or --nproc")
    return content


def parse(content: bytes) -> Trace:
    """The events of one rank that a reader can use. Raises ValueError when there are none."""
    found = json.loads(content, parse_constant=lambda _: None)
    if not isinstance(found, dict) or not isinstance(found.get("traceEvents"), list):
        raise ValueError("it is no Chrome trace")
    base = _nanoseconds(found.get("baseTimeNanoseconds"), 1)
    if base is None:
        raise ValueError("it has no baseTimeNanoseconds")
    trace = [event for raw in found["traceEvents"] if (event := _event(raw, base))]
    if not any(event.phase == _SPAN for event in trace):
        raise ValueError("it has no events with a beginning and an end")
    return trace


def _event(raw: Any, base: int) -> Event | None:
    if not isinstance(raw, dict) or raw.get("ph") not in (_SPAN, *_FLOW, _NAMING) or raw.get("cat") == "Trace":
        return None
    start, length = _nanoseconds(raw.get("ts"), 1000), _nanoseconds(raw.get("dur", 0), 1000)
    if start is None or length is None or length < 0:
        return None
    return Event(
        phase=raw["ph"],
        name=_text(raw.get("name")),
        category=_text(raw.get("cat")),
        start=base + start,
        length=length,
        thread=(_text(raw.get("pid")), _text(raw.get("tid"))),
        id=_text(raw.get("id")),
        args=_args(raw.get("args")),
    )


def _nanoseconds(value: Any, unit: int) -> int | None:
    """None for what is no number, or no time at all."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
        return None
    return round(value * unit)


def _text(value: Any) -> str:
    words = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return words[:_NAME_LENGTH]


def _args(value: Any) -> Chrome:
    """One level of plain values: what viewers show, and nothing that they could choke on."""
    if not isinstance(value, dict):
        return {}
    return {key: v if _is_plain(v) else _text(v) for key, v in value.items()}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))


class _Numbers(dict[Any, int]):
    """1, 2, 3 ... for keys in the order of their first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self) + 1
        return self[key]


def merge(traces: dict[int, Trace]) -> Chrome:
    """One trace with a process per rank, on one axis of time, which begins with the first event of all."""
    zero = min(event.start for trace in traces.values() for event in trace if event.phase == _SPAN)
    threads, flows = _Numbers(), _Numbers()
    merged: list[Chrome] = []
    for rank, trace in sorted(traces.items()):
        merged += [_naming("process_name", rank, name=f"rank {rank}")]
        merged += [_naming("process_sort_index", rank, sort_index=rank)]
        timed = sorted((event for event in trace if event.phase != _NAMING), key=lambda e: e.start)
        merged += [_placed(event, rank, zero, threads, flows) for event in timed]
        names = {event.thread: event.args.get("name") for event in trace if _names_a_thread(event)}
        used = [thread for thread in names if (rank, thread) in threads]
        merged += [_naming("thread_name", rank, threads[rank, thread], name=names[thread]) for thread in used]
    return {"displayTimeUnit": "ms", "baseTimeNanoseconds": zero, "traceEvents": merged}


def _names_a_thread(event: Event) -> bool:
    return event.phase == _NAMING and event.name == "thread_name"


def _pid(rank: int) -> int:
    # Perfetto gives process 0 a meaning of its own.
    return rank + 1


def _naming(what: str, rank: int, tid: int = 0, **args: Any) -> Chrome:
    return {"ph": _NAMING, "name": what, "pid": _pid(rank), "tid": tid, "args": args}


def _placed(event: Event, rank: int, zero: int, threads: _Numbers, flows: _Numbers) -> Chrome:
    placed = {"ph": event.phase, "name": event.name, "cat": event.category, "ts": (event.start - zero) / 1000}
    placed |= {"pid": _pid(rank), "tid": threads[rank, event.thread], "args": event.args}
    if event.phase == _SPAN:
        return placed | {"dur": event.length / 1000}
    placed["id"] = flows[rank, event.category, event.id]
    # A flow ends at the event around it.
    return placed | ({"bp": "e"} if event.phase == "f" else {})


def summary(traces: dict[int, Trace]) -> dict[str, Any]:
    """Where the time went: the longest kernels over all ranks, and each rank's share of time without any."""
    spans = {rank: [event for event in trace if event.phase == _SPAN] for rank, trace in traces.items()}
    work = {rank: [event for event in events if event.category in _DEVICE_WORK] for rank, events in spans.items()}
    on_device = any(work.values())
    if not on_device:
        work = {rank: _outermost(events) for rank, events in spans.items()}
    return {
        "of": "device kernels" if on_device else "cpu operators",
        "calls": CALLS,
        "events": sum(map(len, spans.values())),
        "top": _top([event for events in work.values() for event in events]),
        "idle": {str(rank): _idle(spans[rank], work[rank]) for rank in sorted(traces)},
    }


def _outermost(spans: Iterable[Event]) -> list[Event]:
    """Operators that no other one called, on the thread that called the first."""
    operators = sorted((e for e in spans if e.category == "cpu_op"), key=lambda e: (e.start, -e.end))
    kept: list[Event] = []
    for event in operators:
        if not kept or (event.thread == kept[0].thread and event.start >= kept[-1].end):
            kept.append(event)
    return kept


def _top(work: list[Event]) -> list[dict[str, Any]]:
    lengths: dict[str, list[int]] = defaultdict(list)
    for event in work:
        lengths[event.name].append(event.length)
    total = sum(event.length for event in work) or 1
    longest = sorted(lengths.items(), key=lambda item: (-sum(item[1]), item[0]))[:_TOP]
    return [
        {"name": name, "calls": len(each), "us": sum(each) / 1000, "share": sum(each) / total} for name, each in longest
    ]


def _idle(spans: list[Event], work: list[Event]) -> float:
    """The share of the whole span in which none of `work` ran."""
    whole = max(event.end for event in spans) - min(event.start for event in spans)
    return 1 - _covered(work) / whole if whole else 1.0


def _covered(work: list[Event]) -> int:
    """Nanoseconds in which at least one ran."""
    covered = until = 0
    for event in sorted(work, key=lambda e: e.start):
        covered += max(0, event.end - max(event.start, until))
        until = max(until, event.end)
    return covered
