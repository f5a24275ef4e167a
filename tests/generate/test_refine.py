"""Several turns: each prompt describes the turn before, the best is kept, and nothing is lost or asked for twice."""

import json
import shutil
from pathlib import Path

import pytest

from helpers.made_records import files
from helpers.running import COST, TRITON, Run, read_shipped
from helpers.server import WRONG
from pkb.errors import UsageError
from pkb.generate.budget import Budget
from pkb.generate.experiment import SamplingMethod
from pkb.generate.pipeline import Judging
from pkb.generate.prompt import write_prompt
from pkb.problems.suite import load_problem
from pkb.record import Record

EXECUTION, TIMES = "# What the judge saw", "# How fast it was"


def find_turn(run: Run, number: int, behaviour: str = "learner") -> Path:
    return run.sample(behaviour) / "turns" / str(number)


def read_verdict(folder: Path) -> str:
    return Record.from_json((folder / "record.json").read_text()).verdict


def test_each_prompt_describes_the_turn_before_and_the_best_is_kept(run: Run, judging: Judging) -> None:
    assert run("learner", judging=judging, method=SamplingMethod(3, "gep")).answered == 3
    assert [read_verdict(find_turn(run, n)) for n in (1, 2, 3)] == ["WRONG", "CORRECT", "WRONG"]
    assert (run.sample("learner") / "candidate.py").read_text() == read_shipped("1_allreduce")
    assert read_verdict(run.sample("learner")) == "CORRECT"
    assert not (run.sample("learner") / "sample.json").exists(), "its turns say all"
    first, second, third = ((find_turn(run, n) / "prompt.md").read_text() for n in (1, 2, 3))
    assert first == write_prompt(load_problem(1), TRITON)
    assert second.startswith(first)
    assert f"# Your kernel of turn 1\n\n```python\n{WRONG}```" in second
    assert f"{EXECUTION}\n\nWRONG: rank 0, trial 0, call 0, output 0: " in second
    assert f"{TIMES}\n\nThe kernel was not timed" in second
    assert "Correct the kernel first" in second
    assert read_shipped("1_allreduce") in third
    assert f"{EXECUTION}\n\nCORRECT: all " in third
    assert [asked.prompt for asked in run.provider.requests] == [first, second, third]


@pytest.mark.parametrize(("feedback", "parts"), [("g", []), ("ge", [EXECUTION]), ("gep", [EXECUTION, TIMES])])
def test_feedback_is_chosen(run: Run, judging: Judging, feedback: str, parts: list[str]) -> None:
    run("wrong", judging=judging, method=SamplingMethod(2, feedback))
    prompt = (find_turn(run, 2, "wrong") / "prompt.md").read_text()
    assert "# Your kernel of turn 1" in prompt
    assert [part for part in (EXECUTION, TIMES) if part in prompt] == parts


def test_a_prompt_says_that_an_answer_held_no_code(run: Run, judging: Judging) -> None:
    run("rubbish", judging=judging, method=SamplingMethod(2, "ge"))
    prompt = (find_turn(run, 2, "rubbish") / "prompt.md").read_text()
    assert "It held no file that defines `solution`: there is no code in the answer." in prompt
    assert "BUILD_FAILED: the candidate's file is empty" in prompt


CRASHES = {
    "before the first answer was judged": ["turns/1/record.json", "turns/2", "turns/3", "record.json"],
    "in the middle of a turn": ["turns/2/sample.json", "turns/2/record.json", "turns/3"],
    "before a verdict": ["turns/3/record.json"],
    "before the best was kept": ["record.json", "candidate.py"],
}


@pytest.mark.parametrize("lost", CRASHES.values(), ids=CRASHES)
def test_a_restart_goes_on_from_what_is_there(run: Run, judging: Judging, lost: list[str]) -> None:
    """As a crash leaves it: the files that were to come are missing."""
    run("learner", judging=judging, method=SamplingMethod(3, "ge"))
    asked = run.provider.count("learner")
    for name in lost:
        path = run.sample("learner") / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    again = sum(not (find_turn(run, n) / "sample.json").is_file() for n in (1, 2, 3))
    assert run("learner", judging=judging, method=SamplingMethod(3, "ge")).answered == again
    assert run.provider.count("learner") == asked + again
    assert [read_verdict(find_turn(run, n)) for n in (1, 2, 3)] == ["WRONG", "CORRECT", "WRONG"]
    assert read_verdict(run.sample("learner")) == "CORRECT"
    before = files(run.folder)
    assert run("learner", judging=judging, method=SamplingMethod(3, "ge")).answered == 0
    assert files(run.folder) == before


def test_more_turns_may_be_asked_for_later(run: Run, judging: Judging) -> None:
    assert run("learner", judging=judging, method=SamplingMethod(1, "ge")).answered == 1
    assert read_verdict(run.sample("learner")) == "WRONG"
    assert run("learner", judging=judging, method=SamplingMethod(2, "ge")).answered == 1
    assert read_verdict(run.sample("learner")) == "CORRECT"


def test_a_run_holds_one_kind_of_feedback(run: Run, judging: Judging) -> None:
    run("wrong", judging=judging, method=SamplingMethod(1, "ge"))
    with pytest.raises(UsageError, match=r"\(feedback\); choose another --run"):
        run("wrong", judging=judging, method=SamplingMethod(1, "g"))
    with pytest.raises(UsageError, match="holds a sample in turns"):
        run("wrong")
    run("kernel")
    with pytest.raises(UsageError, match="holds a sample without turns"):
        run("kernel", judging=judging, method=SamplingMethod(1, "g"))


def test_the_limit_on_the_cost_holds_over_turns(run: Run, judging: Judging) -> None:
    summary = run("wrong", judging=judging, method=SamplingMethod(4, "g"), limit=2.5 * COST, max_tokens=500)
    assert "raise --max-cost and run the same command to go on" in str(summary.stopped)
    assert 1 <= summary.answered <= 2
    assert Budget(run.folder).sum_costs() == pytest.approx(summary.answered * COST)


def test_where_the_machine_fails_nothing_is_concluded(run: Run, judging: Judging) -> None:
    """A record of ENVIRONMENT says nothing about the kernel: no turn follows from it, and it is judged again."""
    run("learner", judging=judging, method=SamplingMethod(1, "ge"))
    path = find_turn(run, 1) / "record.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"verdict": "ENVIRONMENT"}))
    run("learner", judging=judging, method=SamplingMethod(2, "ge"))
    assert [read_verdict(find_turn(run, n)) for n in (1, 2)] == ["WRONG", "CORRECT"]
