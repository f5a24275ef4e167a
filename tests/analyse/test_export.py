"""Runs as files and back: nothing is lost, and nothing is written where it does not belong."""

import json
import sys
from pathlib import Path

import pytest

from helpers.made_records import files, record, timed_record
from pkb.analyse import export as exchange
from pkb.analyse import read_rows
from pkb.errors import UsageError
from pkb.record import Evidence
from pkb.runs import Run, save_record
from pkb.screen import ScreenFinding, Severity
from pkb.trial import Trial, TrialKind

SOURCE = b"# -*- coding: latin-1 -*-\n# caf\xe9 \xe2\x82\xac\ndef solution(x):\n    return x\n"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run(tmp_path / "made")
    made.update_facts(model="big", temperature=0.5)
    details = {"got": float("inf"), "text": "ü \ud800 } [", "nested": {"empty": {}, "list": [None, 1e-300]}}
    odd = Evidence("values", trial=Trial(TrialKind.PROBE), details=details)
    finding = ScreenFinding("x", Severity.WARN, 3, "is odd", "torch.x", "do not")
    save_record(made.create_sample("1_allreduce"), timed_record(), SOURCE)
    save_record(made.create_sample("1_allreduce"), record(verdict="WRONG", evidence=odd), b"")
    save_record(made.create_sample("13_gemm_allreduce", "by hand"), record("13_gemm_allreduce", warnings=[finding]))
    return made


@pytest.mark.parametrize("ending", exchange.FORMATS)
def test_a_round_trip_loses_nothing(run: Run, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"out{ending}"
    assert exchange.export_runs([run], file) == 3
    assert exchange.import_runs(file, tmp_path / "back") == (3, [])
    assert files(tmp_path / "back") == files(run.folder)
    assert Run(tmp_path / "back").list_records() == run.list_records()


@pytest.mark.parametrize("ending", exchange.FORMATS)
def test_several_runs_come_back_as_several(run: Run, tmp_path: Path, ending: str) -> None:
    other = Run(tmp_path / "other")
    save_record(other.create_sample("1_allreduce"), record(verdict="CRASH"))
    exchange.export_runs([run, other], tmp_path / f"out{ending}")
    exchange.import_runs(tmp_path / f"out{ending}", tmp_path / "back")
    assert files(tmp_path / "back" / "made") == files(run.folder)
    assert files(tmp_path / "back" / "other") == files(other.folder)


def test_importing_twice_changes_nothing_and_importing_more_adds(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    exchange.export_runs([run], file)
    for _ in range(2):
        exchange.import_runs(file, tmp_path / "back")
    assert files(tmp_path / "back") == files(run.folder)
    save_record(run.folder / "1_allreduce" / "1", record(reason="again", when="2100-01-01T00:00:00+00:00"))
    exchange.export_runs([run], file)
    exchange.import_runs(file, tmp_path / "back")
    assert [one.reason for one in Run(tmp_path / "back").list_samples()[0].history] == ["as made", "again"]


def test_parquet_has_columns_to_query(run: Run, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    exchange.export_runs([run], tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet", columns=["problem", "verdict", "speedup", "model", "world"])
    assert table.to_pylist()[:2] == [
        {"problem": "1_allreduce", "verdict": "CORRECT", "speedup": 2.0, "model": "big", "world": 4},
        {"problem": "1_allreduce", "verdict": "WRONG", "speedup": None, "model": "big", "world": 4},
    ]


def test_lines_of_pkb_eval_are_taken_too(tmp_path: Path) -> None:
    lines = [one.to_json(indent=None) for one in (record(), record("2_allgather"))]
    (tmp_path / "said.jsonl").write_text("\n".join(lines))
    assert exchange.import_runs(tmp_path / "said.jsonl", tmp_path / "back") == (2, [])
    assert [(one.problem, one.sample) for one in read_rows([tmp_path / "back"]).rows] == [
        ("1_allreduce", "mine"),
        ("2_allgather", "mine"),
    ]


def test_damaged_lines_are_named_and_the_others_read(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    exchange.export_runs([run], file)
    first, second, third = file.read_text().splitlines()
    file.write_text("\n".join([first, second[:100], "[]", third]))
    with pytest.raises(UsageError, match=r"out.jsonl: entry 2: not JSON: .*--skip-damaged"):
        exchange.import_runs(file, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    count, damaged = exchange.import_runs(file, tmp_path / "back", skip_damaged=True)
    assert count == 2
    assert [one.what.split(":")[0] for one in damaged] == ["entry 2", "entry 3"]


@pytest.mark.parametrize("place", [{"sample": "../../out"}, {"problem": "../1_x"}, {"run": ".."}, {"sample": "/tmp/x"}])
def test_a_file_names_no_folder_outside_the_run(tmp_path: Path, place: dict[str, str]) -> None:
    fields = json.loads(record().to_json()) | {"run": "a", "sample": "b"} | place
    (tmp_path / "bad.jsonl").write_text(json.dumps(fields))
    with pytest.raises(UsageError, match=r"entry 1: (sample|problem|run) is .*, which cannot name a folder"):
        exchange.import_runs(tmp_path / "bad.jsonl", tmp_path / "in" / "back")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


def test_mistakes_say_what_to_do(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="choose one of these endings"):
        exchange.export_runs([run], tmp_path / "out.csv")
    for ending in exchange.FORMATS:
        with pytest.raises(UsageError, match="name a file that `pkb export` wrote"):
            exchange.import_runs(tmp_path / f"none{ending}", tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install -e '.\[parquet\]'"):
        exchange.export_runs([run], tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
