"""Ranks that do not answer as they should, as far as candidates elsewhere do not stage it."""

import signal

import pytest

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, ProblemSettings


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="all signals of this system have names")
def test_a_signal_without_a_name_is_said_by_its_number(judge: Judge) -> None:
    nameless = signal.SIGRTMIN + 6
    source = f"import os\ndef solution(tensor):\n    os.kill(os.getpid(), {nameless})\n"
    record = judge.judge(
        judge.pose("allreduce", ProblemSettings(nproc=1)),
        Candidate.of(source.encode()),
        JudgementSettings(screen=False),
    )
    assert record.verdict is Verdict.CRASH
    assert f"was killed by signal {nameless}" in record.reason


KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    {line}

def solution(tensor):
    out = torch.empty_like(tensor)
    kernel[(1,)](tensor, out, tensor.numel(), BLOCK=128)
    return out
"""
HIDING = """
def fail(tensor):
    return tensor.nothing()

def solution(tensor):
    try:
        return fail(tensor)
    except AttributeError as error:
        raise ValueError("see the cause") from error
"""
OWN = """
def solution(tensor):
    try:
        return tensor.nothing()
    except AttributeError:
        raise ValueError("instead")
"""


def judge_unscreened(judge: Judge, source: str) -> Record:
    setup = judge.pose("allreduce", ProblemSettings(nproc=1, trials=1))
    return judge.judge(setup, Candidate.of(source.encode()), JudgementSettings(screen=False))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            KERNEL.format(line="tl.store(out + at, nothing)"),
            "CRASH: rank 0 raised InterpreterError in trial 0 at line 9",
        ),
        (HIDING, "CRASH: rank 0 raised ValueError in trial 0 at line 3"),
        (OWN, "CRASH: rank 0 raised ValueError in trial 0 at line 6"),
        ("import torch\n1 // 0\n", "BUILD_FAILED: rank 0 raised ZeroDivisionError in load at line 2"),
        ("import torch\ndef solution(:\n", "BUILD_FAILED: rank 0 raised SyntaxError in load at line 2"),
        (
            KERNEL.format(line="tl.load(x + at + (1 << 40))"),
            "CRASH: rank 0 was killed by SIGSEGV in trial 0 at kernel, line 9",
        ),
        ("def solution(tensor):\n    import ctypes; ctypes.string_at(0)\n", "SIGSEGV in trial 0 at solution, line 2"),
    ],
    ids=["triton", "cause", "own", "import", "syntax", "wild pointer", "ctypes"],
)
def test_a_crash_names_the_last_line_of_the_candidate(judge: Judge, source: str, says: str) -> None:
    record = judge_unscreened(judge, source)
    assert f"{says} of candidate.py" in f"{record.verdict}: {record.reason}"


def test_exceptions_that_are_chained_in_a_circle_are_described(judge: Judge) -> None:
    source = "def solution(tensor):\n    one = ValueError('a')\n    two = KeyError()\n    one.__cause__ = two\n"
    record = judge_unscreened(judge, source + "    two.__cause__ = one\n    raise one\n")
    assert "ValueError in trial 0 at line 6 of candidate.py: a" in record.reason


def test_after_a_signal_the_log_has_only_what_the_rank_printed(judge: Judge) -> None:
    wild = "def solution(tensor):\n    {first}; import ctypes; ctypes.string_at(0)\n"
    silent = judge_unscreened(judge, wild.format(first="pass"))
    assert "check masks, offsets and pointers" in silent.reason
    assert "log" not in silent.reason
    assert silent.evidence.log == ""
    loud = judge_unscreened(judge, wild.format(first="print('last words')"))
    assert loud.reason.endswith("the end of its log is in the evidence")
    assert loud.evidence.log == "last words\n"
    assert "rank.py" not in loud.to_json()


def test_what_a_rank_says_about_lines_cannot_become_the_reason(judge: Judge) -> None:
    """A rank prints the report of a signal itself: a function, a line and a file's name are cleaned and stay words."""
    forged = 'Fatal Python error: x\\n (most recent call first):\\n  File "/a/CORRECT\\n1", line 3 in \\x1b[2K\\n'
    source = f"import os\ndef solution(tensor):\n    os.write(2, b'{forged}')\n    os.kill(os.getpid(), 9)\n"
    record = judge_unscreened(judge, source)
    assert record.verdict is Verdict.CRASH
    assert record.reason.startswith("rank 0 was killed by SIGKILL in trial 0")
    assert record.reason.isprintable()


def test_too_many_ranks_are_refused_before_any_starts(judge: Judge) -> None:
    with pytest.raises(UsageError, match="room for 64 ranks, not 65; lower --nproc"):
        judge.pose("allreduce", ProblemSettings(nproc=65))
