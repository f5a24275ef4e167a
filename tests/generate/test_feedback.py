"""What is told of a judgement: its cause, and nothing that only the judge may know."""

import pytest

from helpers.made_records import record, timed_record
from pkb.candidate import Candidate
from pkb.generate.feedback import seen, speed
from pkb.generate.template import Template
from pkb.judge.judge import Judge
from pkb.problems.suite import load_problem
from pkb.record import Record
from pkb.settings import ProblemSettings

TEMPLATE = Template.of("triton")
PROBLEM = load_problem("1_allreduce")
TINY, HIDDEN = PROBLEM.sizes["tiny"], PROBLEM.hidden_size("float32", 2)
CANDIDATE = """
import sys
import torch
import torch.distributed as dist

def solution(tensor):
    print("called with", tuple(tensor.shape), flush=True)
    other = tensor.numel() != {elements}
    {then}
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""


def judged(judge: Judge, then: str) -> Record:
    source = CANDIDATE.format(elements=TINY.m * TINY.n, then=then)
    return judge.judge(judge.pose(PROBLEM, ProblemSettings(nproc=2, trials=1)), Candidate.of(source.encode()))


@pytest.mark.parametrize(
    ("then", "says"),
    [
        ("if other: return torch.zeros_like(tensor)", "WRONG: rank 0 returned a wrong result (values) at another size"),
        ("if other: return tensor[1:] * 1", "WRONG: rank 0 returned a wrong result (shape) at another size"),
        ("if other: raise ValueError(tuple(tensor.shape))", "CRASH: rank 0 raised ValueError at another size"),
        ("if other: raise type(f'S{tensor.numel()}', (Exception,), {})", "raised an exception at another size"),
        ("if other: sys.exit(str(tensor.shape))", "CRASH: rank 0 was ended at another size"),
    ],
)
def test_the_hidden_size_stays_hidden(judge: Judge, then: str, says: str) -> None:
    found = judged(judge, then)
    told = seen(found, TEMPLATE)
    assert says.replace("rank 0", "rank") in told.replace("rank 0", "rank").replace("rank 1", "rank")
    known = {str(HIDDEN.m), str(HIDDEN.n), str(HIDDEN.m * HIDDEN.n), str(HIDDEN.m - 1)}
    known -= {str(TINY.m), str(TINY.n)}
    assert any(number in found.to_json() for number in known), "the record itself would tell"
    assert not any(number in told for number in known)
    assert "500000" not in told


def test_expected_values_stay_with_the_judge(judge: Judge) -> None:
    found = judged(judge, "return torch.zeros_like(tensor)")
    told = seen(found, TEMPLATE)
    assert str(found.evidence["expected"]) in found.reason
    assert str(found.evidence["expected"]) not in told
    assert f"{found.evidence['differing']} of 128 elements differ ({found.evidence['rule']})" in told
    assert f"the worst is at {found.evidence['index']}, where you returned 0.0" in told


def test_a_crash_is_told_with_its_place(judge: Judge) -> None:
    told = seen(judged(judge, "tensor.no_such_method()"), TEMPLATE)
    assert " raised AttributeError in trial 0: 'Tensor' object has no attribute 'no_such_method'" in told
    assert "- at candidate.py:9 in solution: tensor.no_such_method()" in told


def test_a_rank_that_goes_is_told_with_its_log(judge: Judge) -> None:
    told = seen(judged(judge, "__import__('ctypes').string_at(0)"), TEMPLATE)
    assert "was killed by SIGSEGV in trial 0" in told
    assert f"called with ({TINY.m}, {TINY.n})" in told


def test_a_hang_is_told_with_its_line(strict_judge: Judge) -> None:
    told = seen(judged(strict_judge, "while True: pass"), TEMPLATE)
    assert "HANG: rank 0, 1 did not finish trial 0" in told
    assert "- at solution, line 9 of candidate.py" in told


def test_what_does_not_compile_is_told_as_the_compiler_says_it() -> None:
    errors = ["main.cpp:3: error: expected ';'", "main.cpp:9: error: 'x' was not declared"]
    found = record(
        verdict="BUILD_FAILED", reason="main.cpp:3: expected ';'", evidence={"phase": "load", "errors": errors}
    )
    assert all(f"- {line}" in seen(found, TEMPLATE) for line in errors)


def test_the_screen_is_told_with_lines_and_advice(judge: Judge) -> None:
    source = b"import subprocess\n\ndef solution(tensor):\n    subprocess.run(['ls'])\n    return tensor\n"
    told = seen(judge.judge(judge.pose(PROBLEM, ProblemSettings(nproc=2, trials=1)), Candidate.of(source)), TEMPLATE)
    assert told.count("REJECTED: line 4: ") == 1
    assert "- line 4 (reject): " in told


def test_times_are_told_with_kernels_idle_time_and_light() -> None:
    top = [{"name": "fused\x1b[31m", "calls": 6, "us": 90.0, "share": 0.75}]
    profile = {"of": "device kernels", "calls": 3, "events": 9, "top": top, "idle": {"0": 0.4, "1": 0.1}, "notes": []}
    told = speed(timed_record(2.0, profile=profile), TEMPLATE)
    assert (
        "The reference took 100 us per call, your kernel 50 us: 2 times its speed (95 % interval 1.8 to 2.2)." in told
    )
    assert "That is 10 % of what the hardware allows at best." in told
    assert "rank 0 40 %, rank 1 10 %" in told
    assert "- 75 % of the time: 6 calls of fused?[31m, 90.0 us in all" in told


def test_without_profile_or_light_nothing_is_made_up() -> None:
    told = speed(timed_record(0.5, roofline_us=None), TEMPLATE)
    assert "hardware allows" not in told
    assert "ran nothing" not in told
    assert speed(record(), TEMPLATE).endswith("It was not timed: only what is correct is.")
