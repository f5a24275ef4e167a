"""Runs on disk: nothing is lost, nothing is half there, and what is damaged is named."""

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from helpers.made_records import record, timed_record
from pkb.analyse import read_rows
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.record import SCHEMA, Evidence
from pkb.runs import RECORD, Run, find_matching_record, read_record, save_record
from pkb.settings import ProblemSettings

FIELDS = json.loads(timed_record().to_json())


def write(folder: Path, content: Any) -> Path:
    folder.mkdir(parents=True)
    path = folder / RECORD
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def in_processes(work: Any, arguments: list[tuple[Any, ...]]) -> None:
    fork = multiprocessing.get_context("fork")
    started = [fork.Process(target=work, args=one) for one in arguments]
    for one in started:
        one.start()
    for one in started:
        one.join(60)
        assert one.exitcode == 0


def claim(folder: Path, process: int) -> None:
    for number in range(20):
        (Run(folder).create_sample("1_allreduce") / f"{process}_{number}").touch()


def test_no_two_processes_are_given_one_folder(tmp_path: Path) -> None:
    in_processes(claim, [(tmp_path, process) for process in range(4)])
    claimed = [list(sample.folder.iterdir()) for sample in Run(tmp_path).list_samples()]
    assert [len(files) for files in claimed] == [1] * 80
    assert [sample.name for sample in Run(tmp_path).list_samples()] == [str(number) for number in range(1, 81)]


def evaluate(folder: Path, process: int) -> None:
    for number in range(10):
        save_record(folder / "1_allreduce" / "same", record(reason=f"{process} {number}"), b"source")
        save_record(folder / f"{process + 2}_other" / str(number), record(f"{process + 2}_other"))


def test_two_evaluations_of_one_run_lose_nothing(tmp_path: Path) -> None:
    in_processes(evaluate, [(tmp_path, process) for process in range(3)])
    (same, *others) = Run(tmp_path).list_samples()
    assert {one.reason for one in same.history} == {
        f"{process} {number}" for process in range(3) for number in range(10)
    }
    assert len(others) == 30
    assert len(Run(tmp_path).list_records()) == 31
    assert not list(tmp_path.rglob(".*"))


def test_a_reader_never_sees_half_a_record(tmp_path: Path) -> None:
    folder = tmp_path / "1_allreduce" / "same"
    large = record(evidence=Evidence(log="x" * 1_000_000))
    save_record(folder, large)
    writer = multiprocessing.get_context("fork").Process(target=lambda: [save_record(folder, large) for _ in range(30)])
    writer.start()
    seen = 0
    while writer.is_alive():
        assert read_record(folder / RECORD) == large
        seen += 1
    writer.join()
    assert writer.exitcode == 0
    assert seen


def test_earlier_records_and_candidates_are_kept(tmp_path: Path) -> None:
    folder = Run(tmp_path).create_sample("1_allreduce", "mine")
    # As pkb wrote it before there were runs: without a second name.
    write_only = folder / RECORD
    write_only.write_text(record(reason="first", when="2026-01-01T00:00:00+00:00").to_json())
    (folder / "candidate.py").write_bytes(b"one")
    save_record(folder, record(reason="second", when="2026-01-02T00:00:00+00:00"), b"two")
    save_record(folder, record(reason="third", when="2026-01-03T00:00:00+00:00"), b"two")
    (sample,) = Run(tmp_path).list_samples()
    assert sample.record
    assert (sample.record.reason, sample.source) == ("third", "two")
    assert [one.reason for one in sample.history] == ["first", "second", "third"]
    assert [path.read_bytes() for path in folder.glob("candidate-*.py")] == [b"one"]
    assert len(list(folder.glob("record-20260102T000000-*.json"))) == 1


DAMAGED = {
    "empty": (b"", "not JSON"),
    "truncated": (timed_record().to_json()[:700].encode(), "not JSON"),
    "list": ([1, 2], "not an object"),
    "newer": ({**FIELDS, "schema": SCHEMA + 1}, "update pkb"),
    "older": ({**FIELDS, "schema": SCHEMA - 1}, "judge the candidate again"),
    "nameless": ({key: value for key, value in FIELDS.items() if key != "schema"}, "no 'schema'"),
    "headless": ({key: value for key, value in FIELDS.items() if key != "verdict"}, "no 'verdict'"),
    "unheard": ({**FIELDS, "verdict": "MAYBE"}, "'MAYBE'"),
    "hollow": ({**FIELDS, "setup": None}, "its 'setup' is no object"),
    "odd": ({**FIELDS, "timing": "quick"}, "its 'timing' is no object"),
    "deep": (b"[" * 100_000, "nested too deeply"),
    "binary": (b"\xff\xfe", "can't decode"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_record_is_named_and_skipped(tmp_path: Path, kind: str) -> None:
    content, says = DAMAGED[kind]
    save_record(tmp_path / "1_allreduce" / "good", record())
    path = write(tmp_path / "1_allreduce" / kind, content)
    run = Run(tmp_path)
    assert len(run.list_records()) == 1
    assert {sample.name: sample.record is None for sample in run.list_samples()} == {"good": False, kind: True}
    for damaged in (run.damaged, read_rows([tmp_path]).damaged):
        assert [one.path for one in damaged] == [path]
        assert says in damaged[0].what
    assert len(read_rows([tmp_path]).rows) == 1


def test_a_damaged_record_makes_room_for_the_next(tmp_path: Path) -> None:
    path = write(tmp_path / "1_allreduce" / "mine", b"{")
    save_record(path.parent, record())
    assert Run(tmp_path).damaged == []
    assert [one.read_text() for one in path.parent.glob("record-unknown-*.json")] == ["{"]


def test_what_a_run_says_of_itself(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.facts == {}
    run.update_facts(model="big")
    run.update_facts(samples=8)
    assert run.facts == {"model": "big", "samples": 8}
    (tmp_path / "run.json").write_text("{")
    assert run.facts == {}
    for damaged in (run.damaged, read_rows([tmp_path]).damaged):
        assert [one.path.name for one in damaged] == ["run.json"]


def test_a_row_holds_only_figures_that_are_figures(tmp_path: Path) -> None:
    timing = {**FIELDS["timing"], "speedup": "twice"}
    path = write(tmp_path / "1_allreduce" / "odd", {**FIELDS, "timing": timing})
    found = read_rows([tmp_path])
    assert (found.rows, [one.path for one in found.damaged]) == ([], [path])


def test_samples_come_in_order_with_what_was_generated(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for problem, name in [("13_gemm", "s_10"), ("13_gemm", "s_2"), ("2_allgather", "x")]:
        run.create_sample(problem, name)
    (tmp_path / "notes").mkdir()
    assert [(one.number, one.name) for one in run.list_samples()] == [(2, "x"), (13, "s_2"), (13, "s_10")]
    first = run.list_samples()[0]
    assert (first.record, first.source, first.prompt, first.response, first.turns) == (None, None, None, None, [])
    (first.folder / "prompt.md").touch()
    (first.folder / "turns" / "2").mkdir(parents=True)
    (first.folder / "turns" / "10").mkdir()
    assert first.prompt == first.folder / "prompt.md"
    assert [turn.name for turn in first.turns] == ["2", "10"]


def test_names_are_given_once_and_missing_runs_are_a_mistake(tmp_path: Path) -> None:
    Run(tmp_path).create_sample("1_allreduce", "mine")
    with pytest.raises(UsageError, match="choose another name"):
        Run(tmp_path).create_sample("1_allreduce", "mine")
    with pytest.raises(UsageError, match="pkb eval --out DIR"):
        Run(tmp_path / "none").list_samples()


def test_a_judgement_of_the_same_sample_is_added(judge: Judge, tmp_path: Path) -> None:
    folder = tmp_path / "1_allreduce" / "mine"
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    first = judge.judge(setup, Candidate.of(b"def solution(tensor):\n    return tensor.clone()\n"), out=folder)
    second = judge.judge(setup, Candidate.of(b"def solution(tensor:\n"), out=folder)
    (sample,) = Run(tmp_path).list_samples()
    assert sample.record == second
    assert sorted(one.verdict for one in sample.history) == sorted([first.verdict, second.verdict])
    assert sample.source == "def solution(tensor:\n"


def test_an_evaluation_takes_up_only_what_answers_it(tmp_path: Path) -> None:
    asked = {"m": 16, "n": 8, "dtype": "float32", "world": 4}
    assert find_matching_record(tmp_path, "ab", "gpus", asked, timed=False) is None
    save_record(tmp_path, record())
    assert find_matching_record(tmp_path, "ab", "gpus", asked, timed=False)
    assert not find_matching_record(tmp_path, "ab", "gpus", asked, timed=True)
    assert not find_matching_record(tmp_path, "cd", "gpus", asked, timed=False)
    assert not find_matching_record(tmp_path, "ab", "cpu", asked, timed=False)
    assert not find_matching_record(tmp_path, "ab", "gpus", asked | {"world": 8}, timed=False)
    save_record(tmp_path, timed_record())
    assert find_matching_record(tmp_path, "ab", "gpus", asked, timed=True)
    save_record(tmp_path, record(verdict="WRONG"))
    assert find_matching_record(tmp_path, "ab", "gpus", asked, timed=True)
    save_record(tmp_path, record(verdict="ENVIRONMENT"))
    assert not find_matching_record(tmp_path, "ab", "gpus", asked, timed=False)
