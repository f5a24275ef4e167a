"""`pkb generate` and `pkb refine` as a user runs them: what they print, and what interrupted or killed ones leave."""

import json
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from helpers.commands import run_pkb
from helpers.generating import (
    DEADLINE_S,
    JUDGED,
    STEMS,
    count_requests,
    list_complete,
    make_words,
    start_pkb,
    wait_until,
)
from helpers.processes import run_process
from helpers.server import KEY, Provider
from pkb.generate import model


def make_refining(provider: Provider, run: Path, behaviour: str, *more: str, problems: str = "1") -> list[str]:
    return make_words(provider, run, behaviour, *JUDGED, *more, verb="refine", problems=problems)


def test_ctrl_c_keeps_what_is_there_and_the_next_run_goes_on(provider: Provider, tmp_path: Path) -> None:
    provider.allow(3)
    words = make_words(provider, tmp_path, "slow", "--concurrency", "2")
    with start_pkb(words) as first:
        wait_until(lambda: len(list_complete(tmp_path)) == 3 and len(provider.requests) == 5)
        first.send_signal(signal.SIGINT)
        _, errors = first.communicate(timeout=60)
    assert first.returncode == 130
    assert errors.strip() == "interrupted: 3 of 8 samples are there; run the same command to go on"
    assert not list(tmp_path.rglob(".*-*")), "half-written files are left"
    for file in tmp_path.rglob("sample.json"):
        assert {"prompt.md", "response.md", "candidate.py"} <= {path.name for path in file.parent.iterdir()}
    provider.allow(1000)
    second = run_pkb(*words)
    assert second.returncode == 0, second.stderr
    assert list_complete(tmp_path) == STEMS
    assert count_requests(provider) == [1, 1, 1, 1, 1, 1, 2, 2], "the two that were under way are asked for again"


def test_two_processes_share_a_run(provider: Provider, tmp_path: Path) -> None:
    words = make_words(provider, tmp_path, "slow", "--concurrency", "3")
    with start_pkb(words) as first, start_pkb(words) as second:
        wait_until(lambda: len(provider.requests) == 6)
        provider.allow(1000)
        printed = [process.communicate(timeout=DEADLINE_S) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], printed
    assert list_complete(tmp_path) == STEMS
    assert count_requests(provider) == [1] * 8
    assert sum(output.count(" tokens ") for output, _ in printed) == 8


def test_what_a_killed_process_was_asking_for_is_not_lost(provider: Provider, tmp_path: Path) -> None:
    with start_pkb(make_words(provider, tmp_path, "slow", "--concurrency", "2")) as killed:
        wait_until(lambda: len(provider.requests) == 2)
        with start_pkb(make_words(provider, tmp_path, "slow")) as other:
            wait_until(lambda: len(provider.requests) == 8)
            killed.kill()
            killed.communicate()
            provider.allow(1000)
            _, errors = other.communicate(timeout=DEADLINE_S)
    assert other.returncode == 0, errors
    assert list_complete(tmp_path) == STEMS
    assert count_requests(provider) == [1, 1, 1, 1, 1, 1, 2, 2]


def test_keys_are_sent_to_the_provider_and_written_nowhere(provider: Provider, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    words = make_words(provider, tmp_path / "busy", "busy", problems="1")
    runs = [
        run_process([sys.executable, "-m", "pkb", *words], env=environment, cwd=tmp_path),
        run_pkb(*make_words(provider, tmp_path / "locked", "locked", problems="1")),
    ]
    assert [ran.returncode for ran in runs] == [0, 2]
    assert "incorrect key provided: Bearer [OPENAI_API_KEY]" in runs[1].stderr
    assert {request.authorization for request in provider.requests} == {f"Bearer {KEY}"}
    assert not any(KEY in ran.stdout + ran.stderr for ran in runs)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert list_complete(tmp_path) == ["1_allreduce"]
    assert not any(KEY.encode() in path.read_bytes() for path in files)


def test_samples_are_judged_as_they_arrive(provider: Provider, tmp_path: Path) -> None:
    ran = run_pkb(*make_words(provider, tmp_path, "kernel", "--judge", *JUDGED, "--json", problems="1"))
    assert ran.returncode == 0, ran.stderr
    sample, record = map(json.loads, ran.stdout.splitlines())
    assert record["verdict"] == "CORRECT"
    assert record["candidate"]["sha256"] == sample["candidate"]
    assert json.loads((tmp_path / "1_allreduce" / "openai-kernel-1" / "record.json").read_text()) == record


def test_ctrl_c_during_a_judgement_leaves_no_rank_and_no_record(provider: Provider, tmp_path: Path) -> None:
    judging = ("--judge", "--trials", "50", "--platform", "cpu")
    with start_pkb(make_words(provider, tmp_path, "kernel", *judging, problems="1")) as process:
        family: list[psutil.Process] = []

        def ranks_are_there() -> bool:
            family[:] = psutil.Process(process.pid).children(recursive=True)
            return len(family) >= 3

        wait_until(ranks_are_there)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert errors.strip() == "interrupted: 1 of 1 samples are there; run the same command to go on"
    assert not psutil.wait_procs(family, timeout=10)[1]
    assert not list(tmp_path.rglob("record.json"))


def test_refine_prints_every_turn(provider: Provider, tmp_path: Path) -> None:
    ran = run_pkb(*make_refining(provider, tmp_path, "learner", "--turns", "2", "--json"))
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line["turn"] for line in lines] == [1, 1, 2, 2]
    assert [line["verdict"] for line in lines[1::2]] == ["WRONG", "CORRECT"]
    assert lines[3]["timing"]["speedup"] > 0
    assert lines[3]["profile"]["of"] == "cpu operators"
    assert "2 of 2 turns are there, 2 with code; 2 of them new" in ran.stderr


def test_refine_goes_on_after_ctrl_c(provider: Provider, tmp_path: Path) -> None:
    words = make_refining(provider, tmp_path, "slow", "--turns", "2", "--feedback", "ge", problems="1-2")
    with start_pkb(words) as first:
        wait_until(lambda: len(provider.requests) == 2)
        provider.allow(2)
        wait_until(lambda: len(provider.requests) == 4)
        first.send_signal(signal.SIGINT)
        _, errors = first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 130
    assert errors.strip() == "interrupted: 2 of 4 turns are there; run the same command to go on"
    provider.allow(1000)
    second = run_pkb(*words)
    assert second.returncode == 0, second.stderr
    assert count_requests(provider) == [1, 1, 2, 2], "what was under way is asked for again, and nothing else"


def test_refine_goes_on_after_being_killed(provider: Provider, tmp_path: Path) -> None:
    words = make_refining(provider, tmp_path, "learner", "--turns", "3", "--feedback", "ge", problems="1-2")
    with start_pkb(words) as killed:
        wait_until(lambda: len(list(tmp_path.glob("*/*/turns/*/record.json"))) >= 2)
        killed.kill()
        killed.communicate()
    second = run_pkb(*words)
    assert second.returncode == 0, second.stderr
    turns = {stem: sorted(tmp_path.glob(f"{stem}/*/turns/*/record.json")) for stem in ("1_allreduce", "2_allgather")}
    verdicts = {stem: [json.loads(file.read_text())["verdict"] for file in files] for stem, files in turns.items()}
    assert list(verdicts.values()) == [["WRONG", "CORRECT", "WRONG"], ["WRONG", "WRONG", "CORRECT"]]
    assert max(count_requests(provider)) <= 2, "at most what was under way is asked for again"


def test_two_processes_refine_one_run(provider: Provider, tmp_path: Path) -> None:
    # Problems for which both answers are wrong: nothing is timed.
    words = make_refining(provider, tmp_path, "learner", "--turns", "2", "--feedback", "g", problems="2,3,6,7")
    with start_pkb(words) as first, start_pkb(words) as second:
        printed = [process.communicate(timeout=DEADLINE_S) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], printed
    assert count_requests(provider) == [1] * 8
    assert len(list(tmp_path.glob("*/*/turns/*/record.json"))) == 8
    assert len(list(tmp_path.glob("*/*/record.json"))) == 4


def test_the_cost_is_estimated_without_asking(provider: Provider, tmp_path: Path) -> None:
    prices = ("--price-in", "1", "--price-out", "10", "--max-tokens", "1000", "--dry", "--samples", "2")
    ran = run_pkb(*make_words(provider, tmp_path, "kernel", *prices, problems="1-2"))
    assert ran.returncode == 0, ran.stderr
    assert "4 of 4 samples are missing" in ran.stdout
    assert "at most 4,000 of answers (1,000 each)" in ran.stdout
    assert "for the prompts, at most $ 0.05 in all; spent so far: $ 0.00" in ran.stdout
    assert not provider.requests
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--max-cost", "1"], "no price is known for openai/kernel; set --price-in and --price-out"),
        (["--price-in", "1"], "give --price-in and --price-out together"),
        (["--examples", "2"], "--examples takes 0, 1, few, not '2'"),
        (["--precision", "fp8"], "unknown dtype 'fp8'; choose from float32, bfloat16, float16"),
        (["--track", "own"], "unknown track 'own'"),
        (["--backend", "hip"], "unknown backend 'hip'"),
        (["--judge", "--judge-size", "huge"], "has no size 'huge'"),
        (["--judge", "--engine", "cloud"], "unknown engine 'cloud'; choose from local"),
        (["--judge", "--measure-perf", "--rigor", "none"], "unknown rigor 'none'"),
    ],
)
def test_mistakes_get_one_clear_line(provider: Provider, tmp_path: Path, more: list[str], says: str) -> None:
    ran = run_pkb(*make_words(provider, tmp_path, "kernel", *more, problems="1"))
    assert ran.returncode == 2
    assert says in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert not provider.requests


def test_a_run_belongs_to_one_model(provider: Provider, tmp_path: Path) -> None:
    assert run_pkb(*make_words(provider, tmp_path, "kernel", problems="1")).returncode == 0
    written = json.loads((tmp_path / "run.json").read_text())
    assert (written["model"], written["backend"], written["suite"]) == ("openai/kernel", "triton", "parallel")
    ran = run_pkb(*make_words(provider, tmp_path, "rubbish", problems="1"))
    assert ran.returncode == 2
    assert "holds samples of openai/kernel; choose another --run for openai/rubbish" in ran.stderr


def test_without_litellm_it_says_how_to_install_it(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    model._import_litellm.cache_clear()
    ran = run_pkb(*make_words(provider, tmp_path, "kernel", problems="1"))
    assert ran.returncode == 2
    assert "install it with: pip install -e '.[generate]'" in ran.stderr


def test_prompt_prints_the_text_and_calls_nobody() -> None:
    ran = run_pkb("prompt", "13", "--backend", "cuda", "--hardware", "h100_8")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == (Path(__file__).parent / "golden" / "13_cuda_bf16.txt").read_text()
