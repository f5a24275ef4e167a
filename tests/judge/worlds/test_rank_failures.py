"""Ranks that do not answer as they should, as far as candidates elsewhere do not stage it."""

import signal

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.record import Verdict
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
