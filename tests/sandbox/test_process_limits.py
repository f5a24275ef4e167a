"""Candidates that start processes without end. For seconds the machine has hundreds: nothing else is tested then."""

from dataclasses import replace

import pytest

from helpers.confined import ALL_LEVELS, Locked, judge_candidate, list_descendants, run_attempt
from pkb.candidate import Candidate
from pkb.problems.suite import load_problem
from pkb.record import Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings

pytestmark = pytest.mark.clock


@ALL_LEVELS
def test_processes_are_limited(locked: Locked, level: str) -> None:
    judge = locked.at(level)
    most = judge.sandbox.facts.most_processes
    if most is None:
        pytest.skip(f"the kernel does not limit root's processes at the level {level}")
    body = """
        count = 0
        while count < 4000:
            try:
                subprocess.Popen(["sleep", "1000"])
            except BlockingIOError:
                break
            count += 1
        found = count
        """
    before = list_descendants()
    count = int(run_attempt(judge, body).removeprefix("reached "))
    assert 100 < count <= most + 300
    assert list_descendants() == before


def test_a_fork_bomb_ends_in_a_verdict(locked: Locked) -> None:
    judge = locked.at("namespaces")
    if judge.sandbox.facts.most_processes is None:
        pytest.skip("the kernel does not limit root's processes")
    assert judge.sandbox.facts.level == "namespaces", "a bomb outside a sandbox would take the machine down"
    before = list_descendants()
    bomb = "import subprocess, time\nimport torch.distributed as dist\n\ndef solution(tensor):\n"
    bomb += "    command = ['sh', '-c', 'b() { b | b & }; b']\n"
    bomb += "    dist.get_rank() == 0 and subprocess.Popen(command, stderr=subprocess.DEVNULL)\n    time.sleep(1000)\n"
    setup = replace(judge.pose("allreduce", ProblemSettings(nproc=2, trials=1)), limits=Limits(trial_s=2.0))
    assert judge.judge(setup, Candidate.of(bomb.encode()), JudgementSettings(screen=False)).verdict is Verdict.HANG
    assert list_descendants() == before
    assert judge_candidate(judge, Candidate.reference(load_problem("allreduce"))).correct
