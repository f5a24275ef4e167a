"""Candidates at a level of the sandbox."""

import textwrap

import psutil
import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.judge.worlds.sandboxed import Sandbox
from pkb.problems.suite import load_problem
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, ProblemSettings

LEVELS = ("namespaces", "bubblewrap", "landlock", "limits")
ALL_LEVELS = pytest.mark.parametrize("level", LEVELS)


class Locked:
    """A judge whose sandbox can be set to a level, where the machine has it."""

    def __init__(self, judge: Judge):
        self.judge = judge
        self.sandboxes = {level: Sandbox(strongest=level) for level in LEVELS} | {"off": Sandbox("off")}

    def at(self, level: str) -> Judge:
        use_sandbox(self.judge, self.sandboxes[level])
        facts = judge_candidate(self.judge, Candidate.reference(load_problem("allreduce"))).environment.sandbox
        if facts.level != level:
            pytest.skip(f"{level} cannot be had here: {facts.refused[level]}")
        return self.judge

    def restart(self) -> None:
        """Have every nursery started anew by the next judgement."""
        self.judge.close()
        for sandbox in self.sandboxes.values():
            sandbox.close()


def use_sandbox(judge: Judge, sandbox: Sandbox) -> None:
    """Have a judge open all further worlds of candidates in this sandbox."""
    judge.pool.drop()
    judge.sandbox = judge.pool.sandbox = sandbox


def judge_candidate(judge: Judge, candidate: Candidate, nproc: int = 2) -> Record:
    return judge.judge(
        judge.pose("allreduce", ProblemSettings(nproc=nproc, trials=1)), candidate, JudgementSettings(screen=False)
    )


def run_attempt(judge: Judge, body: str) -> str:
    """Run `body` in rank 0 of a candidate. Return what it leaves in `found`, or the error that stopped it."""
    source = "import hashlib, os, socket, subprocess, time\nimport torch.distributed as dist\n\n"
    source += f"def attempt():\n{textwrap.indent(textwrap.dedent(body), '    ')}\n    return found\n\n"
    source += textwrap.dedent("""
        def solution(tensor):
            out = tensor.clone()
            dist.all_reduce(out)
            if dist.get_rank() == 0:
                try:
                    found = f"reached {attempt()}"
                except OSError as error:
                    found = f"stopped by {type(error).__name__}"
                raise RuntimeError(found)
            return out
        """)
    record = judge_candidate(judge, Candidate.of(source.encode()))
    assert record.verdict is Verdict.CRASH, record.reason
    return record.evidence.message or record.reason


def list_descendants() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}
