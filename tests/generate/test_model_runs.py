"""`pkb generate`, `pkb refine` and `pkb agent` for models: one rank, without a word of ranks."""

import json
from pathlib import Path

import pytest

from helpers.commands import run_pkb
from helpers.running import MODEL, Run, let_agent_work
from helpers.server import MODELS, WRONG_MODEL, Provider
from pkb.candidate import Candidate
from pkb.engine.local import LocalEngine
from pkb.generate.experiment import SamplingMethod
from pkb.generate.feedback import describe_verdict
from pkb.generate.pipeline import Judging
from pkb.generate.prompt import write_prompt
from pkb.problems.suite import load_problem
from pkb.record import Record
from pkb.settings import JudgementSettings, ProblemSettings

STEM = "L1_1_Square_matrix_multiplication_"
KERNEL = (MODELS / f"{STEM}_triton.py").read_text()


@pytest.fixture
def judging(engine: LocalEngine) -> Judging:
    return Judging(engine, ProblemSettings(trials=1), JudgementSettings())


def read_verdict(folder: Path) -> str:
    return Record.from_json((folder / "record.json").read_text()).verdict


def test_a_sample_is_generated_judged_and_reported_by_its_level(provider: Provider, tmp_path: Path) -> None:
    run = tmp_path / "run"
    asked = ["--suite", "kernelbench", "--model", "openai/kernel", "--api-base", provider.url, "--run", str(run)]
    request = ["--backend", "triton", "--precision", "fp32", "--no-hardware", "--examples", "0", "--track", "scratch"]
    judged = ["--judge", "--measure-perf", "--platform", "cpu", "--json"]
    ran = run_pkb("generate", "L1/1", *asked, *request, *judged)
    assert ran.returncode == 0, ran.stderr
    sample, record = map(json.loads, ran.stdout.splitlines())
    assert (record["verdict"], record["category"], record["setup"]["world"]) == ("CORRECT", "level1", 1)
    assert (record["setup"]["trials"], record["setup"]["size"]) == (3, "tiny"), "what is usual for models"
    assert record["candidate"]["sha256"] == sample["candidate"]
    assert (run / STEM / "openai-kernel-1" / "candidate.py").read_text() == KERNEL
    assert "class Model(nn.Module)" in provider.requests[0].prompt
    reported = run_pkb("report", str(run), "--suite", "kernelbench")
    assert reported.returncode == 0, reported.stderr
    figures = json.loads((run / "report" / "report.json").read_text())
    (level,) = [one["summary"] for one in figures["leaderboard"] if one["summary"]["category"] == "level1"]
    assert (level["samples"], level["correct"]) == (1, 1)


def test_prompts_of_turns_mention_no_ranks(run: Run, judging: Judging) -> None:
    asked = {"request": MODEL, "suite": "kernelbench", "judging": judging, "method": SamplingMethod(2, "gep")}
    assert run("learner", "L1/1", **asked).answered == 2
    folder = run.sample("learner", STEM)
    assert [read_verdict(folder / "turns" / n) for n in "12"] == ["WRONG", "CORRECT"]
    assert read_verdict(folder) == "CORRECT"
    assert (folder / "candidate.py").read_text() == KERNEL
    first, second = ((folder / "turns" / n / "prompt.md").read_text() for n in "12")
    assert first == write_prompt(load_problem("L1/1"), MODEL)
    more = second.removeprefix(first)
    assert f"# Your kernel of turn 1\n\n```python\n{WRONG_MODEL}```" in more
    assert "# What the judge saw\n\nWRONG: trial 0, call 0, output 0: " in more
    assert "rank" not in more


@pytest.mark.parametrize("fault", ["raise ValueError", "return first[1:] * 1", "return first.new_zeros(first.shape)"])
def test_no_failure_is_described_with_ranks(engine: LocalEngine, fault: str) -> None:
    source = WRONG_MODEL.replace("return first.clone()", fault)
    problem, judge = load_problem("L1/1"), engine.judge
    record = judge.judge(judge.pose(problem, ProblemSettings(trials=1)), Candidate.of(source.encode()))
    text = describe_verdict(record, MODEL.load_texts(problem))
    assert "rank 0" in record.reason
    assert "rank" not in text


def test_an_agent_works_on_a_model(run: Run, judging: Judging) -> None:
    assert let_agent_work(run, judging, "worker", problem="L1/1", request=MODEL).answered == 1
    folder = run.sample("worker", STEM)
    assert (folder / "candidate.py").read_text() == KERNEL
    assert [read_verdict(folder / "evals" / n) for n in "12"] == ["WRONG", "CORRECT"]
    assert read_verdict(folder) == "CORRECT"
    messages = json.loads((folder / "trajectory.json").read_text())["messages"]
    assert not any("rank" in message["content"] for message in messages)
    assert "`./pkb eval` judges `candidate.py`: whether it is correct" in (folder / "prompt.md").read_text()
