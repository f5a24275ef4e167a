"""Our own references and solutions pass the screen, and the judge runs the screen before a candidate."""

import json
from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.problems.problem import Problem
from pkb.problems.suite import list_problems
from pkb.record import Record, Verdict
from pkb.screen import Severity, screen
from pkb.settings import JudgementSettings, ProblemSettings, Track

SOLUTIONS = sorted((Path(__file__).parents[2] / "solutions").glob("*/*.py"))
SPAWNS = b"""import os
import torch

def solution(tensor):
    torch.manual_seed(0)
    os.system("true")
    return tensor
"""


def list_rejections(candidate: Candidate, track: Track) -> list[str]:
    findings = screen(candidate.source, candidate.backend, track)
    return [f"{f.line}: {f.sentence}" for f in findings if f.severity is Severity.REJECT]


@pytest.mark.parametrize("problem", list_problems(), ids=lambda problem: problem.stem)
def test_references_pass(problem: Problem) -> None:
    assert list_rejections(Candidate.reference(problem), Track.ANY) == []
    # A reference is what the scratch track is to replace.
    assert list_rejections(Candidate.reference(problem), Track.SCRATCH)


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_solutions_are_written_from_scratch(path: Path) -> None:
    for track in Track:
        assert list_rejections(Candidate.read(path), track) == []


def test_the_judge_does_not_run_what_is_rejected(judge: Judge, tmp_path: Path) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    record = judge.judge(setup, Candidate.of(SPAWNS), out=tmp_path)
    assert record.verdict is Verdict.REJECTED
    assert record.reason == (
        "line 6: os.system starts another process (rule starts-processes); do the work in this process"
    )
    evidence = record.evidence
    assert (evidence.check, evidence.rule, evidence.details["line"]) == ("screen", "starts-processes", 6)
    assert [finding.rule for finding in evidence.findings] == ["changes-settings", "starts-processes"]
    assert Record.from_json((tmp_path / "record.json").read_text()) == record
    assert record.seconds == {}


def test_tracks_differ_and_are_recorded(judge: Judge) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    reference = Candidate.reference(setup.problem)
    assert judge.judge(setup, reference).setup.track == "any"
    record = judge.judge(setup, reference, JudgementSettings(track="scratch"))
    assert (record.verdict, record.setup.track) == (Verdict.REJECTED, "scratch")
    assert "torch.distributed.all_reduce is communication by a library" in record.reason
    unscreened = judge.judge(setup, reference, JudgementSettings(track="scratch", screen=False))
    assert (unscreened.verdict, unscreened.setup.screened) == (Verdict.CHEAT, False)
    with pytest.raises(UsageError, match="unknown track 'pure'; choose from any, scratch"):
        judge.judge(setup, reference, JudgementSettings(track="pure"))


def test_warnings_go_into_the_record(judge: Judge) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    source = setup.problem.show_source().replace("def solution(", "torch.manual_seed(0)\n\ndef solution(")
    record = judge.judge(setup, Candidate.of(source.encode()))
    assert record.correct
    assert [finding.rule for finding in record.warnings] == ["changes-settings"]


def test_records_without_warnings_are_still_read(judge: Judge) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    fields = json.loads(judge.judge(setup, Candidate.reference(setup.problem)).to_json())
    del fields["warnings"]
    assert Record.from_json(json.dumps(fields)).warnings == []
