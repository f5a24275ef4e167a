"""Reports on a suite of models: levels, stems such as L1_19_ReLU, degenerate problems, published inputs."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from helpers.chromium import Chromium
from helpers.commands import CONTEXT
from helpers.made import add, page_of, timing
from pkb.analyse import read_rows
from pkb.candidate import Candidate
from pkb.cli.report import report
from pkb.judge.judge import Judge
from pkb.problems.suite import find_suite, load_problem
from pkb.record import SetupFacts
from pkb.report import FILES, Report
from pkb.report.cells import Table
from pkb.settings import ProblemSettings

RELU, HINGE, CONV, CONSTANT = (load_problem(key).stem for key in ("L1/19", "L1/100", "L2/1", "L2/80"))
FLAW = load_problem("L2/80").degenerate


def add_model(run: Path, problem: str, sample: str, inputs: str = "sound", speed: float = 2.0, **others: Any) -> None:
    known: dict[str, Any] = {"size": "paper", "inputs": inputs, "state": "by name", "trials": 5, "calls": 3}
    setup = SetupFacts("float32", 1, degenerate=load_problem(problem).degenerate or None, **known)
    timed = timing(speed) if others.get("verdict", "CORRECT") == "CORRECT" else None
    add(run, problem, sample, timed=timed, setup=setup, **others)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    for problem in (CONSTANT, CONV, HINGE, RELU):
        add_model(folder, problem, "1", speed=50.0 if problem == CONSTANT else 2.0)
    add_model(folder, CONV, "2", verdict="WRONG")
    return folder


def tables(*runs: Path) -> dict[str, Table]:
    sections = Report.of(list(runs)).sections
    return {name: section.table for name, section in sections.items() if section.table}


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_levels_are_categories_in_order(run: Path) -> None:
    found = tables(run)
    assert [row[0] for row in texts(found["categories"])] == ["level1", "level2", "all"]
    assert [row[1].value for row in found["categories"].rows] == [1.0, 0.5, pytest.approx(2.5 / 3)]
    assert [row[1].value for row in found["fast_categories"].rows] == [1.0, 0.5, pytest.approx(2.5 / 3)]


def test_suites_never_mix(run: Path) -> None:
    add(run, "13_gemm_allreduce", "1", timed=timing(1.5))
    report = Report.of([run])
    found = tables(run)
    assert "leaderboard" not in found
    for suite, problems, counts in (
        ("kernelbench", [RELU, HINGE, CONV], ("3", "4", "3")),
        ("parallel", ["13_gemm_allreduce"], ("1", "1", "1")),
    ):
        assert [row[0] for row in texts(found[f"speedups_{suite}"])] == problems
        table = found[f"leaderboard_{suite}"]
        board = dict(zip([column.name for column in table.columns], texts(table)[0], strict=True))
        assert (board["problems"], board["samples"], board["right"]) == counts
        assert report.sections[f"leaderboard_{suite}"].title == f"Leaderboard: suite {suite}"
    assert "of 2 suites" in report.subtitle
    (notice,) = report.notices
    assert notice.startswith(f"1 samples are of degenerate problems ({CONSTANT})")


def test_all_formats_hold_models(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(CONTEXT, [run])
    shown = capsys.readouterr().out
    assert shown.index(f"{RELU} ") < shown.index(f"{HINGE} ") < shown.index(f"{CONV} ")
    assert re.search(r"^level1 +100 %", shown, re.MULTILINE)
    written = {name: (run / "report" / file).read_text() for name, file in FILES.items()}
    lines = list(csv.DictReader(io.StringIO(written["csv"])))
    assert [line["problem"] for line in lines] == [RELU, HINGE, CONV, CONV, CONSTANT]
    assert (lines[0]["size"], lines[0]["inputs"], lines[-1]["degenerate"]) == ("paper", "sound", FLAW)
    figures = json.loads(written["json"])
    levels = [one["summary"]["category"] for one in figures["leaderboard"]]
    assert levels == ["level1", "level2", "all"]
    assert [one["summary"]["degenerate"] for one in figures["leaderboard"]] == [0, 1, 1]
    assert re.findall(r"^\| (level\d|all) \| (\d+) %", written["md"], re.MULTILINE)[:3] == [
        ("level1", "100"),
        ("level2", "50"),
        ("all", "83"),
    ]
    page = json.loads(re.findall('id="report-data">(.*?)</script>', written["html"])[0])
    assert set(page["references"]) == {RELU, HINGE, CONV, CONSTANT}, "shown without naming the suite"
    (failures,) = [section for section in page["sections"] if section["name"] == "failures"]
    assert failures["chart"]["bars"] == [{"label": "models: 4 samples", "parts": {"CORRECT": 3, "WRONG": 1}}]


def test_published_inputs_stand_apart_and_below(run: Path) -> None:
    for problem in (RELU, HINGE, CONV):
        add_model(run, problem, "lenient", inputs="published", speed=9.0)
    found = Report.of([run])
    shown = tables(run)
    assert [row[0] for row in texts(shown["leaderboard"])] == ["models", "models (published inputs)"]
    assert [row[0] for row in texts(shown["fast_p"])] == ["models", "models (published inputs)"]
    assert [column.name for column in shown["categories"].columns[1:]] == ["models", "models (published inputs)"]
    assert {row[-1] for row in texts(shown["comparison"])} == {"inputs sound / published"}
    assert any(notice.startswith("3 samples were judged with published inputs") for notice in found.notices)


def test_the_page_shows_a_model(browser: Chromium, run: Path) -> None:
    browser.errors.clear()
    browser.open(page_of(run))
    browser.until("document.documentElement.dataset.ready")
    head = "[...document.querySelectorAll('#table th button')].find((one) => one.textContent === 'problem')"
    browser.run(f"{head}.click()")
    shown = browser.run("[...document.querySelectorAll('#table tbody th a')].map((one) => one.textContent).join(' ')")
    assert shown == " ".join([RELU, HINGE, CONV, CONV, CONSTANT])
    assert CONSTANT not in browser.run("document.querySelector('#speedups').textContent")
    browser.run("document.querySelector('#table tbody tr:last-child a').click()")
    browser.until("document.querySelector('#sample').open")
    said = browser.run("document.querySelector('#sample .facts').textContent")
    assert "size paper" in said
    assert f"counts for nothing: {FLAW}" in said
    assert browser.errors == []


def test_a_judged_model_is_reported(judge: Judge, tmp_path: Path) -> None:
    for problem, inputs in ((load_problem("L1/19"), "published"), (load_problem("L2/80"), "sound")):
        setup = judge.pose(problem, ProblemSettings(trials=1, inputs=inputs))
        judge.judge(setup, Candidate.reference(problem), out=tmp_path / "run" / problem.stem / "own")
    found = read_rows([tmp_path / "run"])
    assert not found.damaged
    lenient, constant = found.rows
    assert (lenient.run, lenient.size, lenient.inputs, lenient.counts) == (
        "run (published inputs)",
        "tiny",
        "published",
        True,
    )
    assert (constant.verdict, constant.degenerate, constant.counts) == ("CORRECT", FLAW, False)
    assert Report.of([tmp_path / "run"]).write(tmp_path / "out", [*FILES], find_suite("parallel"))
