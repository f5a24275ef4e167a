"""Honest candidates with unusual habits pass: each is a false alarm that was seen, or nearly raised."""

import pytest

from helpers.attempts import ROOT
from pkb.judge.judge import Judge
from pkb.tools.redteam import Attempt, judge_honest_example, read_honest_examples

EXAMPLES = read_honest_examples(ROOT / "redteam")


def list_examples(timed: bool) -> list[Attempt]:
    return [example for example in EXAMPLES if example.timed == timed]


@pytest.mark.parametrize("example", list_examples(timed=False), ids=lambda example: example.path.stem)
def test_passes(judge: Judge, example: Attempt) -> None:
    record = judge_honest_example(judge, example)
    assert record.correct, record.reason


@pytest.mark.clock
@pytest.mark.parametrize("example", list_examples(timed=True), ids=lambda example: example.path.stem)
def test_passes_when_timed(judge: Judge, example: Attempt) -> None:
    record = judge_honest_example(judge, example)
    assert record.correct, record.reason


def test_honest_examples_must_be_correct() -> None:
    assert len(EXAMPLES) >= 10
    assert {str(outcome) for example in EXAMPLES for outcome in example.expect} == {"CORRECT"}
