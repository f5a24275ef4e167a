"""Providers fail in every way; samples arrive all the same, or it is said why not."""

import pytest

from helpers.running import COST, Run, read_shipped
from helpers.server import KEY, REFUSAL, RETRY_AFTER_S, WRONG
from pkb.errors import UsageError
from pkb.generate.budget import Budget
from pkb.generate.pipeline import PipelineSummary


def test_a_sample_is_kept_with_all_that_is_known_of_it(run: Run) -> None:
    settings = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "max_tokens": 900, "reasoning_effort": "low"}
    assert run("kernel", samples=2, **settings).answered == 2
    assert (run.sample("kernel") / "candidate.py").read_text() == read_shipped("1_allreduce")
    assert "This kernel publishes" in (run.sample("kernel") / "response.md").read_text()
    prompt = (run.sample("kernel") / "prompt.md").read_text()
    facts = run.facts("kernel")
    assert facts["tokens"] == {"prompt": 1000, "completion": 500, "reasoning": 0}
    assert facts["cost_usd"] == pytest.approx(COST)
    assert (facts["model"], facts["finish_reason"], facts["retried"]) == ("kernel", "stop", [])
    assert settings.items() <= facts["asked"].items()
    assert facts["notes"] == ["took block 1 of 1"]
    bodies = [asked.body for asked in run.provider.requests]
    assert {body.pop("seed") for body in bodies} == {7, 8}
    sent = {"model": "kernel", "messages": [{"role": "user", "content": prompt}]}
    del settings["seed"]
    assert bodies == [sent | settings] * 2


def test_what_is_not_chosen_is_left_to_the_provider(run: Run) -> None:
    run("kernel")
    assert run.provider.requests[0].body.keys() == {"model", "messages", "max_tokens"}


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("busy", "RateLimitError"),
        ("later", "RateLimitError"),
        ("broken", "something went wrong here"),
        ("reset", "Connection error"),
        ("malformed", "Unterminated string"),
        ("hollow", "holds no choice"),
    ],
)
def test_faults_that_pass_are_waited_out(run: Run, fault: str, says: str) -> None:
    assert run(fault) == PipelineSummary(answered=1)
    assert (run.sample(fault) / "candidate.py").read_text() == read_shipped("1_allreduce")
    (error,) = run.facts(fault)["retried"]
    assert says in error
    assert run.provider.count(fault) == 2


@pytest.mark.parametrize("fault", ["busy", "later"])
def test_retry_after_is_honoured(run: Run, fault: str) -> None:
    """Our own first wait would be a hundredth of a second."""
    run(fault)
    first, second = run.provider.requests
    assert second.when - first.when >= RETRY_AFTER_S


def test_a_stalled_request_is_given_up_and_made_again(run: Run) -> None:
    assert run("stall", timeout_s=3.0).answered == 1
    assert "Timeout" in run.facts("stall")["retried"][0]


def test_a_provider_that_stays_broken_is_left_for_the_next_run(run: Run) -> None:
    summary = run("hopeless", "1-2")
    assert summary.answered == 0
    assert {folder.parent.name for folder in summary.failed} == {"1_allreduce", "2_allgather"}
    assert all("something went wrong here" in reason for reason in summary.failed.values())
    assert run.provider.count("hopeless") == 2 * 3
    assert not list(run.folder.rglob("sample.json"))


def test_after_many_failures_and_no_answer_the_rest_is_not_tried(run: Run) -> None:
    summary = run("toolong", "1-12", concurrency=1)
    assert run.provider.count("toolong") == len(summary.failed) == 8
    assert "this prompt is too long" in str(summary.stopped)


def test_a_refused_prompt_is_not_sent_again(run: Run) -> None:
    assert "this prompt is too long" in str(run("toolong").failed)
    assert run.provider.count("toolong") == 1


@pytest.mark.parametrize("behaviour", ["locked", "unknown"])
def test_a_wrong_key_or_model_ends_everything(run: Run, behaviour: str) -> None:
    with pytest.raises(UsageError, match="check the name of the model and the key") as raised:
        run(behaviour, "1-8", concurrency=1)
    assert run.provider.count(behaviour) == 1
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    ("behaviour", "candidate", "says"),
    [
        ("wrong", WRONG, "took block 1 of 1"),
        ("two", read_shipped("1_allreduce"), "2 blocks define `solution`; took block 2 of 2"),
        ("rubbish", None, "there is no code in the answer"),
        ("empty", None, "the answer is empty"),
        ("refusal", None, "the model refused; there is no code in the answer"),
        ("uncounted", read_shipped("1_allreduce"), "took block 1 of 1"),
    ],
)
def test_whatever_is_answered_is_a_sample(run: Run, behaviour: str, candidate: str | None, says: str) -> None:
    assert run(behaviour).answered == 1
    file = run.sample(behaviour) / "candidate.py"
    assert (file.read_text() if file.exists() else None) == candidate
    facts = run.facts(behaviour)
    assert (facts["candidate"] is None) == (candidate is None)
    assert says in "; ".join(facts["notes"])
    assert facts["tokens"]["completion"] > 0
    assert run(behaviour).answered == 0, "it was asked for again"


def test_a_refusal_is_kept_in_its_own_words(run: Run) -> None:
    run("refusal")
    assert (run.sample("refusal") / "response.md").read_text() == REFUSAL


def test_a_truncated_answer_is_kept_and_said_to_be_one(run: Run) -> None:
    run("truncated")
    assert read_shipped("1_allreduce").startswith((run.sample("truncated") / "candidate.py").read_text())
    facts = run.facts("truncated")
    assert facts["finish_reason"] == "length"
    assert facts["notes"][0] == "the answer was cut off at the limit of tokens"
    assert "its block was never closed" in facts["notes"]


def test_nothing_is_asked_for_twice(run: Run) -> None:
    assert run("kernel", "1-3", samples=2).answered == 6
    assert run("kernel", "1-4", samples=2).answered == 2
    assert run("kernel", "1-4", samples=2).answered == 0
    assert run.provider.count("kernel") == 8


def test_a_run_holds_samples_of_one_kind(run: Run) -> None:
    run("kernel", temperature=0.5)
    with pytest.raises(UsageError, match=r"generated with other settings \(temperature\); choose another --run"):
        run("kernel", temperature=0.6)


def test_a_run_never_costs_more_than_it_may(run: Run) -> None:
    limit = 4 * COST
    summary = run("kernel", "1-8", max_tokens=500, limit=limit)
    spent = COST * summary.answered
    assert 0 < summary.answered < 8
    assert spent <= limit
    assert "raise --max-cost and run the same command to go on" in str(summary.stopped)
    assert not summary.failed
    assert run("kernel", "1-8", max_tokens=500, limit=1.0).answered == 8 - summary.answered
    assert Budget(run.folder).sum_costs() == pytest.approx(8 * COST)
