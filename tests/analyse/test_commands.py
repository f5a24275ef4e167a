"""pkb roofline, export, import and eval --resume as a user runs them."""

import json
from pathlib import Path

import pytest

from helpers.commands import check_mistake, run_pkb
from helpers.made_records import files, record, timed_record
from pkb.runs import Run, save_record


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run(tmp_path / "made")
    save_record(made.create_sample("1_allreduce", "mine"), timed_record(), b"# mine\n")
    save_record(made.create_sample("1_allreduce", "other"), record(verdict="WRONG"))
    return made


def test_roofline_prints_bounds_and_scores(run: Run) -> None:
    (run.folder / "1_allreduce" / "other" / "record.json").write_text("{")
    ran = run_pkb("roofline", "1,13", "--run", run.folder)
    assert ran.returncode == 0, ran.stderr
    assert "8 x H100 SXM, NVLink 4, 8 ranks, bfloat16" in ran.stdout
    (line,) = [line.split() for line in ran.stdout.splitlines() if " mine " in line]
    assert line == ["1_allreduce", "made", "mine", "5", "100", "5.0%", "50", "10.0%", "0.679"]
    assert "skipped, damaged" in ran.stderr


def test_roofline_says_it_all_in_json(run: Run) -> None:
    said = json.loads(run_pkb("roofline", "all", "--hardware", "b200_72", "--run", run.folder, "--json").stdout)
    assert said["hardware"]["gpus"] == 72
    assert len(said["problems"]) == 87
    assert {one["bound"] for one in said["problems"]} == {"compute", "memory", "link"}
    (sample,) = said["samples"]
    assert sample["score"] == pytest.approx(1 / (1 + 45 / 95))
    assert sample["row"]["sample"] == "mine"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["roofline"], "name problems, for example `all`, or measure this machine with --calibrate"),
        (["roofline", "1", "--hardware", "h1000"], "choose from a100_8, b200_72"),
        (["roofline", "1", "--nproc", "9"], "lower --nproc"),
        (["roofline", "1", "--run", "/no/such/run"], "`pkb eval --out DIR` writes one"),
        (["export", "/no/such/run", "--out", "x.jsonl"], "`pkb eval --out DIR` writes one"),
        (["import", "x.csv", "--run", "y"], "choose one of these endings"),
    ],
)
def test_mistakes_get_one_clear_line(arguments: list[str], says: str) -> None:
    check_mistake(arguments, says)


def test_export_and_import(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    assert "2 records written" in run_pkb("export", run.folder, "--out", out).stdout
    assert "2 records added" in run_pkb("import", out, "--run", tmp_path / "back").stdout
    assert files(tmp_path / "back") == files(run.folder)
    out.write_text("{\n" + out.read_text())
    check_mistake(["import", str(out), "--run", str(tmp_path / "again")], f"{out}: entry 1: not JSON")
    ran = run_pkb("import", out, "--run", tmp_path / "again", "--skip-damaged")
    assert ran.returncode == 0
    assert "2 records added" in ran.stdout
    assert f"skipped, damaged: {out}: entry 1: not JSON" in ran.stderr


def test_an_evaluation_is_taken_up_where_it_stopped(tmp_path: Path) -> None:
    options = ["--candidate", "reference", "--nproc", "2", "--trials", "1", "--out", tmp_path, "--resume", "--json"]
    first = run_pkb("eval", "1", *options)
    before = files(tmp_path / "1_allreduce")
    both = run_pkb("eval", "1-2", *options)
    assert (first.returncode, both.returncode) == (0, 0)
    assert files(tmp_path / "1_allreduce") == before
    assert [one.problem for one in Run(tmp_path).list_records()] == ["1_allreduce", "2_allgather"]
    assert both.stdout.splitlines()[0] == first.stdout.strip()
