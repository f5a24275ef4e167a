"""Candidates that misbehave: each gets the right verdict and advice, in time, and the next one is judged normally."""

import time
from dataclasses import dataclass

import psutil
import pytest

from helpers.deadlines import DEADLINE_S
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import load_problem
from pkb.record import Verdict
from pkb.settings import JudgementSettings, ProblemSettings


@dataclass
class Fault:
    verdict: Verdict
    says: str
    """Part of the reason."""
    body: str
    """The whole file, or what `solution(tensor)` does."""

    def source(self) -> bytes:
        if ("\n" in self.body and "def solution" in self.body) or self.body.startswith("#"):
            return self.body.encode()
        head = "import os, sys, time, torch\nimport torch.distributed as dist\n\ndef solution(tensor):\n"
        right = "out = tensor.clone()\ndist.all_reduce(out)\n"
        lines = self.body.replace("RIGHT", right).splitlines()
        return (head + "".join(f"    {line}\n" for line in lines)).encode()


FAULTS = {
    "syntax_error": Fault(Verdict.BUILD_FAILED, "SyntaxError", "# broken\ndef solution(tensor:\n    return tensor\n"),
    "null_bytes": Fault(Verdict.BUILD_FAILED, "null bytes", "# broken\n\0"),
    "no_solution": Fault(Verdict.BUILD_FAILED, "defines no `solution`", "# nothing\nx = 1\n"),
    "solution_is_no_function": Fault(Verdict.BUILD_FAILED, "not a function", "# a number\nsolution = 3\n"),
    "raises_at_import": Fault(Verdict.BUILD_FAILED, "ZeroDivisionError", "# import time\n1 / 0\n"),
    "raises_on_one_rank": Fault(
        Verdict.CRASH, "rank 2 raised ValueError", "if dist.get_rank() == 2: raise ValueError('no')\nRIGHT\nreturn out"
    ),
    "wrong_arguments": Fault(Verdict.CRASH, "TypeError", "# none\ndef solution():\n    return None\n"),
    "returns_none": Fault(Verdict.WRONG, "returned None where the reference returns a tensor", "return None"),
    "returns_a_list": Fault(Verdict.WRONG, "returned a sequence of 1", "RIGHT\nreturn [out]"),
    "wrong_shape": Fault(Verdict.WRONG, "has shape [8, 16], expected [16, 8]", "RIGHT\nreturn out.T.contiguous()"),
    "wrong_dtype": Fault(Verdict.WRONG, "has dtype torch.float64", "RIGHT\nreturn out.double()"),
    "wrong_device": Fault(Verdict.WRONG, "is on meta, expected cpu", "return tensor.to('meta')"),
    "nan": Fault(Verdict.WRONG, "got nan", "RIGHT\nout[3, 4] = float('nan')\nreturn out"),
    "zeros": Fault(Verdict.WRONG, "of 128 elements differ", "return torch.zeros_like(tensor)"),
    "no_communication": Fault(Verdict.WRONG, "of 128 elements differ", "return tensor.clone()"),
    "one_element_off": Fault(Verdict.WRONG, "1 of 128 elements differ", "RIGHT\nout[5, 2] += 0.01\nreturn out"),
    "overlapping": Fault(Verdict.WRONG, "elements share memory", "RIGHT\nreturn out[:1].expand(out.shape)"),
    "tensor_subclass": Fault(
        Verdict.WRONG,
        "return a plain torch.Tensor",
        "RIGHT\nclass Lazy(torch.Tensor): pass\nreturn out.as_subclass(Lazy)",
    ),
    "view_of_input": Fault(Verdict.WRONG, "shares memory with the argument tensor", "return tensor.view(16, 8)"),
    "changes_input": Fault(Verdict.WRONG, "changed its argument tensor", "RIGHT\ntensor.zero_()\nreturn out"),
    "reuses_its_output": Fault(
        Verdict.WRONG,
        "shares memory with the result of call 0",
        "RIGHT\nglobal kept\nif 'kept' not in globals(): kept = out.clone()\nkept.copy_(out)\nreturn kept",
    ),
    "deadlock": Fault(
        Verdict.HANG,
        "solution, line",
        """# rank 0 never signals
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

def solution(tensor):
    handle = symm_mem.rendezvous(symm_mem.empty(8, device=tensor.device), dist.group.WORLD)
    if handle.rank != 0:
        handle.wait_signal(0)
    return tensor
""",
    ),
    "spins_for_ever": Fault(Verdict.HANG, "did not finish trial 0", "while True: pass"),
    "hangs_at_import": Fault(Verdict.HANG, "did not finish load", "# sleeps\nimport time\ntime.sleep(1000)\n"),
    "exits_quietly": Fault(Verdict.CRASH, "exited with code 0", "os._exit(0)"),
    "sys_exit": Fault(Verdict.CRASH, "exited with code", "sys.exit(0)"),
    "segfault": Fault(Verdict.CRASH, "SIGSEGV", "import ctypes\nctypes.string_at(0)"),
    "prints_200_mb": Fault(
        Verdict.CRASH, "remove the printing", "for _ in range(200): print('x' * (1 << 20))\nRIGHT\nreturn out"
    ),
    "allocates_without_end": Fault(
        Verdict.CRASH, "allocate less", "held = []\nwhile True: held.append(torch.ones(1 << 22))"
    ),
    "python_lists_without_end": Fault(
        Verdict.CRASH, "allocate less", "held = []\nwhile True: held.append(bytearray(1 << 24))"
    ),
    "leaves_a_child": Fault(
        Verdict.CHEAT,
        "left a process running",
        "import subprocess\nRIGHT\nsubprocess.Popen(['sleep', '1000'])\nreturn out",
    ),
    "leaves_a_daemon": Fault(
        Verdict.CHEAT,
        "left a process running",
        "RIGHT\nif os.fork() == 0:\n    os.setsid()\n    if not os.fork(): time.sleep(99)\n    os._exit(0)\nreturn out",
    ),
    "writes_into_the_channel": Fault(
        Verdict.CRASH,
        "rank",
        "for fd in range(3, 60):\n    try: os.write(fd, b'\\0\\0\\0\\2[]')\n    except OSError: pass",
    ),
    "cuda_by_name": Fault(Verdict.CRASH, "take the device from the arguments", "return tensor.to('cuda')"),
}


def descendants() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_gets_its_verdict_and_leaves_nothing_behind(strict_judge: Judge, name: str) -> None:
    fault, problem = FAULTS[name], load_problem("allreduce")
    setup = strict_judge.pose(problem, ProblemSettings(trials=2))
    assert strict_judge.judge(setup, Candidate.reference(problem)).correct
    idle = descendants()

    start = time.monotonic()
    # Unscreened: what the screen cannot see must be caught all the same.
    record = strict_judge.judge(setup, Candidate.of(fault.source(), name), JudgementSettings(screen=False))
    elapsed = time.monotonic() - start

    assert (record.verdict, fault.says in record.reason) == (fault.verdict, True), record.reason
    assert elapsed < DEADLINE_S + 5
    assert descendants() == idle
    assert strict_judge.judge(setup, Candidate.reference(problem)).correct


def test_wrong_values_are_located(strict_judge: Judge) -> None:
    problem = load_problem("allreduce")
    source = FAULTS["one_element_off"].source()
    record = strict_judge.judge(strict_judge.pose(problem), Candidate.of(source))
    evidence = record.evidence
    assert (evidence.rank, str(evidence.trial), evidence.call, evidence.output) == (0, "trial 0", 0, 0)
    details = evidence.details
    assert (details["index"], details["differing"], details["total"]) == ([5, 2], 1, 128)
    assert details["got"] - details["expected"] == pytest.approx(0.01, rel=1e-3)
    assert len(details["wrong_at"]) == 3 * 4


def test_a_wrong_answer_on_one_rank_is_enough(strict_judge: Judge) -> None:
    fault = Fault(Verdict.WRONG, "rank 3", "RIGHT\nif dist.get_rank() == 3: out += 1\nreturn out")
    record = strict_judge.judge(strict_judge.pose("allreduce"), Candidate.of(fault.source()))
    assert (record.verdict, record.evidence.rank) == (Verdict.WRONG, 3)
