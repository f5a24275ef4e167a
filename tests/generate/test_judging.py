"""Samples go to the judge as they arrive, or later, and once."""

from helpers.running import Run
from pkb.generate.pipeline import Judging
from pkb.record import Record


def read_verdicts(run: Run) -> dict[str, str]:
    records = [Record.from_json(file.read_text()) for file in run.folder.rglob("record.json")]
    return {record.candidate.name: record.verdict for record in records}


def test_every_candidate_gets_its_verdict(run: Run, judging: Judging) -> None:
    for behaviour in ("kernel", "wrong", "truncated", "rubbish"):
        assert run(behaviour, judging=judging).answered == 1
    expected = {"openai-kernel-1": "CORRECT", "openai-wrong-1": "WRONG", "openai-truncated-1": "BUILD_FAILED"}
    expected["openai-rubbish-1"] = "BUILD_FAILED"
    assert read_verdicts(run) == expected, "an answer without code counts too"


def test_samples_of_earlier_runs_are_judged_later_and_once(run: Run, judging: Judging) -> None:
    run("kernel")
    assert read_verdicts(run) == {}
    assert run("kernel", judging=judging).answered == 0
    assert read_verdicts(run) == {"openai-kernel-1": "CORRECT"}
    (file,) = run.folder.rglob("record.json")
    written = file.stat().st_mtime_ns
    run("kernel", judging=judging)
    assert file.stat().st_mtime_ns == written
    assert len(run.provider.requests) == 1
