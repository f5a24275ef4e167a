"""What a candidate does besides its results: each check on its own, without the static screen before it."""

from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import HIDDEN, PROBE
from pkb.problems.suite import list_problems, load_file, load_problem
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, ProblemSettings

HEAD = """
import sys, threading, time
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

def honest(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""
BODIES = {
    "patched": (
        Verdict.CHEAT,
        "def solution(tensor):\n    torch.allclose = lambda *_: True\n    return honest(tensor)",
    ),
    "threads": (
        Verdict.CHEAT,
        "def solution(tensor):\n    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
        "    return honest(tensor)",
    ),
    "signal-pads": (
        Verdict.WRONG,
        "@__import__('functools').cache\ndef handle():\n"
        "    return symm_mem.rendezvous(symm_mem.empty(4, dtype=torch.float32, device='cpu'), dist.group.WORLD)\n\n"
        "def solution(tensor):\n    handle().get_signal_pad(dist.get_rank(), (4,), torch.int32)[3] = 7\n"
        "    return honest(tensor)",
    ),
    "kept": (
        Verdict.WRONG,
        "kept = []\ndef solution(tensor):\n    kept.append(honest(tensor))\n    if len(kept) > 3: kept[-4].zero_()\n"
        "    return kept[-1]",
    ),
}


def judged(judge: Judge, source: str, **asked: object) -> Record:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=3))
    return judge.judge(setup, Candidate.of((HEAD + source).encode()), JudgementSettings(screen=False, **asked))  # type: ignore[arg-type]


@pytest.mark.parametrize("check", BODIES)
def test_each_check_has_its_name(judge: Judge, check: str) -> None:
    verdict, source = BODIES[check]
    record = judged(judge, source)
    assert (record.verdict, record.evidence.check) == (verdict, check), record.reason


def test_what_torch_compile_keeps_waiting_is_nobodys_fault(judge: Judge) -> None:
    record = judged(judge, "@torch.compile\ndef same(x):\n    return 2 * x / 2\n\nsolution = lambda x: honest(same(x))")
    assert record.correct, record.reason


def test_declared_epochs_may_stay_raised(judge: Judge) -> None:
    record = judged(judge, 'SIGNALS = "epochs"\n' + BODIES["signal-pads"][1])
    assert record.correct, record.reason


def test_library_calls_are_counted_and_barred_from_the_scratch_track(judge: Judge) -> None:
    source = "def solution(tensor):\n    return honest(tensor) + 0 * (tensor @ tensor.T).sum()"
    record = judged(judge, source)
    assert record.correct, record.reason
    assert record.library_calls["dist.all_reduce"] == 2 * 3 * 5
    assert record.library_calls["aten.mm"] == 2 * 3
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    disguised = "\ndef solution(tensor):\n    return getattr(sys.modules[__name__], 'hon' + 'est')(tensor)"
    record = judge.judge(
        setup, Candidate.of((HEAD + disguised).encode()), JudgementSettings(track="scratch", screen=False)
    )
    assert (record.setup.track, record.setup.screened) == ("scratch", False)
    assert (record.verdict, record.evidence.check) == (Verdict.CHEAT, "library-call"), record.reason


def test_the_reference_is_not_in_a_candidate_s_rank(judge: Judge) -> None:
    source = (
        "def solution(tensor):\n    for module in list(sys.modules.values()):\n"
        "        if type(getattr(module, 'PROBLEM', None)).__name__ == 'Problem':\n"
        "            return module.solution(tensor)\n    return honest(tensor)"
    )
    record = judged(judge, source)
    assert record.verdict is Verdict.CRASH
    assert "the reference is not here" in record.reason


def test_sizes_that_were_told_are_not_enough(judge: Judge) -> None:
    tiny = load_problem("allreduce").sizes["tiny"]
    source = f"def solution(tensor):\n    return honest(tensor) if tensor.shape == ({tiny.m}, {tiny.n}) else tensor * 2"
    record = judged(judge, source)
    assert (record.verdict, record.evidence.trial) == (Verdict.WRONG, HIDDEN), record.reason


def test_a_fingerprint_misses_one_element(judge: Judge) -> None:
    source = (
        "known = {}\ndef solution(tensor):\n    print_ = (tensor.shape, float(tensor[0, 0]), float(tensor[-1, -1]))\n"
        "    if print_ not in known: known[print_] = honest(tensor)\n    else: honest(tensor)\n"
        "    return known[print_].clone()"
    )
    record = judged(judge, source)
    assert (record.verdict, record.evidence.trial) == (Verdict.WRONG, PROBE), record.reason


def test_leftovers_in_symmetric_memory_are_spoilt(judge: Judge) -> None:
    source = (
        "@__import__('functools').cache\ndef buffer(count):\n"
        "    found = symm_mem.empty(count, dtype=torch.float32, device='cpu')\n"
        "    symm_mem.rendezvous(found, dist.group.WORLD)\n    return found\n\n"
        "calls = 0\ndef solution(tensor):\n    global calls\n    calls += 1\n    mine = buffer(tensor.numel())\n"
        "    mine[:-1] = honest(tensor).view(-1)[:-1]\n"
        "    if calls == 1: mine[-1] = 0\n    return mine.view_as(tensor).clone()"
    )
    record = judged(judge, source)
    assert record.verdict is Verdict.WRONG
    assert record.evidence.details["got"] in ("nan", 0.0)


@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_every_problem_has_a_hidden_size(world: int) -> None:
    for problem in list_problems():
        if world in problem.list_worlds():
            sizes = problem.list_hidden_sizes(world=world)
            assert len(sizes) >= 3, problem.stem
            assert not {*sizes} & {*problem.sizes.values()}, problem.stem
            assert all(problem.may_be_posed(size, world=world) for size in sizes)


def test_collectives_are_counted_in_both_worlds(judge: Judge, tmp_path: Path) -> None:
    """In one only, they would take longer there."""
    source = load_problem("allreduce").path.read_text()
    text = source.replace("    return ", "    return (dist.all_reduce.__code__.co_name == 'count_and_call') * ", 1)
    assert text != source
    (tmp_path / "1_allreduce.py").write_text(text)
    problem = load_file(tmp_path / "1_allreduce.py")
    record = judge.judge(
        judge.pose(problem, ProblemSettings(nproc=1, trials=1)),
        Candidate.reference(problem),
        JudgementSettings(screen=False),
    )
    assert record.correct, record.reason
