"""Profiles: traces of several ranks as one, what they say, and candidates that spoil them."""

import json
from pathlib import Path
from typing import Any

import pytest

from pkb.candidate import Candidate
from pkb.cli._options import find_profiler
from pkb.cli._terminal import format_counters, format_profile
from pkb.failure import Failure
from pkb.judge.judge import Judge
from pkb.judge.profiling.ncu import KernelCounters, Ncu
from pkb.judge.profiling.ncu import parse_report as parse_ncu
from pkb.judge.profiling.trace import Trace, merge, parse_trace, summarize
from pkb.problems.suite import load_problem
from pkb.record import KernelTime, Record
from pkb.settings import JudgementSettings, ProblemSettings
from pkb.tools.dryrun import dry_run

SOLUTIONS = Path(__file__).parents[3] / "solutions" / "triton"
HONEST = b"""
import os
import torch
import torch.distributed as dist

def solution(tensor):
    HERE
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""
PID, STREAM = 77, 7


def lanes(trace: dict[str, Any]) -> dict[int, str]:
    return {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}


def test_eval_profiles_what_it_judged(judge: Judge, tmp_path: Path) -> None:
    problem = load_problem("gemm_allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=2, trials=1))
    record = judge.judge(setup, Candidate.reference(problem), JudgementSettings(profile=True), out=tmp_path)
    assert record.correct
    assert record.profile is not None
    assert (record.profile.of, record.profile.calls, record.profile.notes) == ("cpu operators", 3, [])
    top = {row.name: row for row in record.profile.top}
    assert top["aten::matmul"].calls == 6, "3 calls on 2 ranks; what is called inside it does not count"
    assert "aten::mm" not in top
    assert sum(row.share for row in top.values()) == pytest.approx(1)
    assert record.profile.idle.keys() == {"0", "1"}
    assert all(0 <= share <= 1 for share in record.profile.idle.values())
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert lanes(trace) == {1: "rank 0", 2: "rank 1"}
    assert "profiler_start" not in (tmp_path / "logs" / "rank_0.txt").read_text(), "the logs are those of the trials"
    saved = (tmp_path / "record.json").read_text()
    assert Record.from_json(saved) == record
    older = {key: value for key, value in json.loads(saved).items() if key != "profile"}
    assert Record.from_json(json.dumps(older)).profile is None


def test_dryrun_profiles_a_triton_kernel(judge: Judge) -> None:
    candidate = Candidate.read(SOLUTIONS / "1_allreduce_triton.py")
    seen = dry_run(judge, judge.pose("allreduce", ProblemSettings(nproc=2, trials=1, calls=1)), candidate, "torch")
    assert len(seen.ranks) == 2
    assert seen.profile is not None
    assert seen.profile.trace is not None
    spans = [e for e in seen.profile.trace["traceEvents"] if e["ph"] == "X"]
    calls = {(e["pid"], e["name"]): (e["ts"], e["ts"] + e["dur"]) for e in spans if e["name"].startswith("call ")}
    assert calls.keys() == {(pid, f"call {k}") for pid in (1, 2) for k in range(3)}
    for k in range(3):
        # A kernel with a barrier leaves no call before the other rank is in it.
        (start, end), (other_start, other_end) = calls[1, f"call {k}"], calls[2, f"call {k}"]
        assert max(start, other_start) < min(end, other_end)
    assert min(e["ts"] for e in spans) == 0


def test_a_record_without_profile_has_none(judge: Judge, tmp_path: Path) -> None:
    problem = load_problem("allreduce")
    record = judge.judge(
        judge.pose(problem, ProblemSettings(nproc=2, trials=1)), Candidate.reference(problem), out=tmp_path
    )
    assert record.profile is None
    assert not (tmp_path / "trace.json").exists()


SPOILING = """
    def spoilt(profiler, path):
        {what}
    if dist.get_rank() == 1:
        torch.profiler.profile.export_chrome_trace = spoilt
"""


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("pass", "it is empty"),
        ("open(path, 'w').write('[' * 100_000)", "recursion"),
        ("open(path, 'w').write('{\"traceEvents\": [')", "Expecting value"),
        ("os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 65 << 20)", "more than 64 MiB; choose a smaller"),
        ("os.symlink('/etc/passwd', path)", "Expecting value"),
        ("os.mkfifo(path)", "it is empty"),
    ],
)
def test_a_spoilt_trace_is_noted_and_the_others_are_shown(judge: Judge, what: str, says: str, tmp_path: Path) -> None:
    source = HONEST.replace(b"    HERE\n", SPOILING.format(what=what).encode())
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    record = judge.judge(setup, Candidate.of(source), JudgementSettings(profile=True, screen=False), out=tmp_path)
    assert record.correct, record.reason
    assert record.profile is not None
    (note,) = record.profile.notes
    assert note.startswith("rank 1 left no readable trace: ")
    assert says in note
    assert record.profile.idle.keys() == {"0"}
    assert lanes(json.loads((tmp_path / "trace.json").read_text())) == {1: "rank 0"}


def test_a_candidate_that_fails_under_the_profiler_keeps_its_verdict(judge: Judge, tmp_path: Path) -> None:
    source = HONEST.replace(b"HERE", b"assert not torch.autograd.profiler._is_profiler_enabled, 'watched'")
    record = judge.judge(
        judge.pose("allreduce", ProblemSettings(nproc=2, trials=1)),
        Candidate.of(source),
        JudgementSettings(profile=True, screen=False),
        out=tmp_path,
    )
    assert record.correct
    assert record.profile is not None
    assert "raised AssertionError in profiling at line 7 of candidate.py: watched" in record.profile.notes[0]
    assert not (tmp_path / "trace.json").exists()


def kernel(name: str, ts: float, dur: float, stream: int = STREAM) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": ts, "dur": dur}


def on_gpu(base: int, *events: dict[str, Any]) -> Trace:
    """As torch writes it, with a launch from 0 to 100 us, and an arrow from it to the device."""
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": PID, "tid": PID, "ts": 0, "dur": 100}
    arrow = {"cat": "ac2g", "name": "ac2g", "id": 5}
    names = [
        {"ph": "M", "name": "process_name", "pid": PID, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": STREAM, "ts": 0, "args": {"name": "stream 7"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 99, "ts": 0, "args": {"name": "unused"}},
    ]
    ends = [
        {"ph": "s", "pid": PID, "tid": PID, "ts": 1, **arrow},
        {"ph": "f", "pid": 0, "tid": STREAM, "ts": 10, "bp": "e", **arrow},
    ]
    whole = {"baseTimeNanoseconds": base, "traceEvents": [launch, *names, *ends, *events]}
    return parse_trace(json.dumps(whole).encode())


def test_merging_keeps_ranks_apart_and_times_together() -> None:
    base = 1_790_000_000_000_000_000
    traces = {1: on_gpu(base + 2_500, kernel("k", 10.25, 5)), 0: on_gpu(base, kernel("k", 10.25, 5))}
    merged = merge(traces)
    json.dumps(merged, allow_nan=False)
    events = merged["traceEvents"]
    assert lanes(merged) == {1: "rank 0", 2: "rank 1"}
    assert [e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"] == [0, 1]
    assert {e["pid"]: (e["ts"], e["dur"]) for e in events if e["name"] == "k"} == {1: (10.25, 5), 2: (12.75, 5)}
    threads = {(e["pid"], e["name"]): e["tid"] for e in events if e["ph"] == "X"}
    assert len(set(threads.values())) == 4, "host and stream of two ranks"
    assert 0 not in threads.values()
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert named == {(pid, threads[pid, "k"]): "stream 7" for pid in (1, 2)}
    ids = {(e["pid"], e["ph"]): e["id"] for e in events if e.get("cat") == "ac2g"}
    assert ids[1, "s"] == ids[1, "f"] != ids[2, "s"] == ids[2, "f"]


def test_a_summary_counts_overlapping_streams_once() -> None:
    copy = kernel("Memcpy DtoD", 60, 10) | {"cat": "gpu_memcpy"}
    busy = on_gpu(0, kernel("gemm", 10, 20), kernel("gemm", 20, 20, stream=8), copy)
    found = summarize({0: busy, 1: on_gpu(0, kernel("gemm", 0, 10))})
    assert found.of == "device kernels"
    assert found.idle == pytest.approx({"0": 0.6, "1": 0.9})
    assert found.top == [
        KernelTime("gemm", 3, 50, pytest.approx(5 / 6)),
        KernelTime("Memcpy DtoD", 1, 10, pytest.approx(1 / 6)),
    ]


def test_what_a_kernel_is_called_cannot_steer_the_terminal() -> None:
    profile = summarize({0: on_gpu(0, kernel("\x1b[2Jgone\ud800" + "x" * 500, 0, 10))})
    lines = format_profile(profile)
    assert lines[0] == "device kernels in 3 calls; idle: rank 0 90%"
    assert "?[2Jgone?xx" in lines[1]
    assert len(lines[1]) < 150


@pytest.mark.parametrize(
    ("event", "kept"),
    [
        ({"ts": 1, "dur": 1}, True),
        ({"ts": 1, "dur": 1, "args": {"shape": [[1], [2]], "rate": 1e999}}, True),
        ({"ts": 1, "dur": 1, "pid": {"a": []}, "tid": None}, True),
        ({"ts": 1, "dur": -1}, False),
        ({"ts": 1, "dur": "1"}, False),
        ({"ts": True, "dur": 1}, False),
        ({"ts": 1e300, "dur": 1}, False),
        ({"ts": 10**400, "dur": 1}, False),
        ({"dur": 1}, False),
        ("event", False),
    ],
)
def test_events_that_make_no_sense_are_left_out(event: Any, kept: bool) -> None:
    sound = {"ph": "X", "cat": "cpu_op", "name": "sound", "ts": 0, "dur": 1}
    odd = {"ph": "X", "cat": "cpu_op", "name": "odd"} | event if isinstance(event, dict) else event
    trace = parse_trace(json.dumps({"baseTimeNanoseconds": 1, "traceEvents": [odd, sound]}).encode())
    assert [event.name for event in trace] == (["odd", "sound"] if kept else ["sound"])
    json.dumps(merge({0: trace}), allow_nan=False)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff", "codec can't decode"),
        (b"3", "it is no Chrome trace"),
        (b"[]", "it is no Chrome trace"),
        (b'{"traceEvents": 3}', "it is no Chrome trace"),
        (b'{"traceEvents": []}', "it has no baseTimeNanoseconds"),
        (b'{"baseTimeNanoseconds": NaN, "traceEvents": [{"ph": "X", "ts": 1}]}', "it has no baseTimeNanoseconds"),
        (b'{"baseTimeNanoseconds": 1, "traceEvents": [{"ph": "s", "ts": 1}]}', "it has no events"),
    ],
)
def test_what_is_no_trace_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_trace(content)


@pytest.mark.parametrize(
    ("profile", "name", "expected"),
    [(False, None, None), (True, None, "torch"), (False, "ncu", "ncu"), (True, "torch", "torch")],
)
def test_profile_alone_means_torch(profile: bool, name: str | None, expected: str | None) -> None:
    assert find_profiler(profile, name) == expected


def test_ranks_run_under_a_wrapper_without_mps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/nowhere")
    names = b"print('wrapped' if 'PKB_WRAPPED' in os.environ else '', 'CUDA_MPS_PIPE_DIRECTORY' in os.environ)"
    with Judge("cpu", sandbox="off", profiler=["env", "PKB_WRAPPED=1"]) as wrapped:
        setup = wrapped.pose("allreduce", ProblemSettings(nproc=2, trials=1))
        record = wrapped.judge(
            setup, Candidate.of(HONEST.replace(b"HERE", names)), JudgementSettings(screen=False), out=tmp_path
        )
    assert record.correct, record.reason
    assert (tmp_path / "logs" / "rank_1.txt").read_text() == "wrapped False\n" * 9


RAW_PAGE = """\
==PROF== Connected to process 4242
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum",\
"sm__throughput.avg.pct_of_peak_sustained_elapsed"
"","","","","","","","","","","","%","us","%"
"0","4242","python","host","gemm(float *, int)","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","40.00","1,200.50","80.00"
"1","4242","python","host","copy","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","n/a","3.25","5.00"
"2","4242","python","host","gemm(float *, int)","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","60.00","1.0e2","90.00"
"""


def test_ncu_s_page_is_read() -> None:
    kernels = parse_ncu(RAW_PAGE)
    assert kernels == [
        KernelCounters("gemm(float *, int)", 2, 1300.5, 85.0, 50.0),
        KernelCounters("copy", 1, 3.25, 5.0, None),
    ]
    assert parse_ncu(RAW_PAGE.replace('"us"', '"nsecond"'))[0].us == pytest.approx(1.3005)
    assert "85.0%   50.0%      2 x     1300.5 us  gemm(float *, int)" in format_counters(kernels)[1]
    assert parse_ncu("==WARNING== No kernels were profiled.\n") == []


def test_ncu_without_permission_is_told_how_to_get_it(tmp_path: Path) -> None:
    ncu = Ncu(tmp_path)
    ncu.log.write_text("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access ...\n")
    with pytest.raises(Failure, match=r"ERR_NVGPUCTRPERM.*NVreg_RestrictProfilingToAdminUsers=0.*--cap-add=SYS_ADMIN"):
        ncu.read_kernels()
    ncu.log.write_text("==PROF== Connected\n==WARNING== No kernels were profiled.\n")
    with pytest.raises(Failure, match=r"no report: ==WARNING== No kernels were profiled"):
        ncu.read_kernels()
