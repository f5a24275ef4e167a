"""The files of a report, and the command that writes them."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from helpers.commands import CONTEXT, run_pkb
from helpers.made import add, make_run, page_of, timing
from pkb.base.printable import clean_line
from pkb.cli.report import report
from pkb.errors import UsageError
from pkb.problems.suite import find_suite
from pkb.record import Evidence
from pkb.report import FILES, Report

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 \ud800 | `x` [y](javascript:1)\n\x1b[2J"


def test_report_prints_tables_and_writes_all_files(tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", ["1_allreduce", "13_gemm_allreduce"])
    ran = run_pkb("report", run)
    assert ran.returncode == 0, ran.stderr
    assert "Leaderboard" in ran.stdout
    assert "Speed-up per problem" in ran.stdout
    assert "\x1b" not in ran.stdout, "a pipe gets plain text"
    assert sorted(path.name for path in (run / "report").iterdir()) == sorted(FILES.values())
    assert len(Report.of([run]).rows) == 6, "its own folder in the run is no sample"


def test_a_wrong_path_is_one_line(tmp_path: Path) -> None:
    ran = run_pkb("report", tmp_path / "nowhere")
    assert ran.returncode == 2
    assert (
        ran.stderr == f"pkb: no run in {tmp_path}/nowhere: No such file or directory; `pkb eval --out DIR` writes one\n"
    )


def test_formats_are_chosen(tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", ["1_allreduce"])
    report(CONTEXT, [run], formats="csv, md", out=tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.csv", "report.md"]
    report(CONTEXT, [run], formats="none", out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("runs", "formats", "says"),
    [
        (["empty"], "md", "no record in .*empty; name folders that `pkb eval --out` wrote"),
        (["full", "empty"], "md", "no record in .*empty; name folders that `pkb eval --out` wrote"),
        (["full"], "pdf", "unknown format 'pdf'; choose from md, csv, json, html, or none"),
    ],
)
def test_mistakes_say_what_to_do(tmp_path: Path, runs: list[str], formats: str, says: str) -> None:
    add(tmp_path / "full", "1_allreduce", "1")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=says):
        report(CONTEXT, [tmp_path / run for run in runs], formats=formats)


def test_json_and_csv_hold_every_sample(tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", ["1_allreduce", "2_allgather"], samples=4)
    add(run, "3_broadcast", 'odd, "quoted"\nname', "WRONG", reason="two\nlines, and a comma")
    found = Report.of([run], p=1.5)
    paths = found.write(tmp_path / "out", ["json", "csv"], find_suite("parallel"))
    figures = json.loads(paths[0].read_text())
    assert len(figures["samples"]) == 9
    assert figures["p"] == 1.5
    assert figures["leaderboard"][-1]["summary"]["samples"] == sum(row.counts for row in found.rows)
    lines = list(csv.DictReader(io.StringIO(paths[1].read_text())))
    assert [line["verdict"] for line in lines] == [row.verdict for row in found.rows]
    assert lines[-1]["reason"] == "two lines, and a comma"


def test_damaged_records_are_named_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "mine", ["1_allreduce"], samples=2)
    add(run, "2_allgather", "1")
    (run / "2_allgather" / "1" / "record.json").write_text("{")
    report(CONTEXT, [run], formats="none")
    shown = capsys.readouterr().out
    assert "1 files cannot be read and are left out" in shown
    assert "2_allgather/1/record.json" in shown


def test_markdown_stays_a_table_whatever_the_names(tmp_path: Path) -> None:
    run = tmp_path / "a|b<i>"
    add(run, "1_allreduce", "x|`y` [z](http:a)", timed=timing(2.0))
    text = Report.of([run]).write(tmp_path / "out", ["md"], find_suite("parallel"))[0].read_text()
    table = text[text.index("## Speed-up") :].split("\n\n")[2].splitlines()
    assert len({line.replace(r"\|", "").count("|") for line in table}) == 1
    assert r"x\|\`y\` \[z\](http:a)" in text
    assert "<i>" not in text.replace(r"\<i\>", "")


def test_a_terminal_is_not_steered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(tmp_path / "r", "1_allreduce", "a\x1b[2Jb [bold]c", timed=timing(2.0))
    report(CONTEXT, [tmp_path / "r"], formats="none")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "a?[2Jb [bold]c" in shown


def test_no_text_ends_the_data_it_stands_in(tmp_path: Path) -> None:
    run = tmp_path / "run"
    evidence = Evidence(HOSTILE, details={"got": float("nan"), HOSTILE: [float("inf")]})
    add(run, "1_allreduce", "x", "WRONG", source=HOSTILE.replace("\ud800", ""), reason=HOSTILE, evidence=evidence)
    html = page_of(run).read_text()
    own = html.count("<script")
    assert own == html.count("</script>") == 4, "the data, the reference, the sample, the page's own"
    assert "alert(1)</script>" not in html
    assert "\u2028" not in html
    blocks = re.findall('<script type="application/json" id="(.*?)">(.*?)</script>', html)
    parsed = {name: json.loads(content) for name, content in blocks}
    shown = clean_line(HOSTILE)
    assert parsed["detail-0"]["evidence"] == {"check": shown, "details": {"got": "nan", shown: ["inf"]}}
    data = parsed["report-data"]
    assert data["rows"][0][data["columns"].index("reason")] == shown


def test_the_page_asks_nobody_for_anything(tmp_path: Path) -> None:
    add(tmp_path / "run", "1_allreduce", "x")
    html = page_of(tmp_path / "run").read_text()
    assert "default-src 'none'" in html
    assert " src=" not in html
    assert "<link" not in html
    assert "https://" not in html


def test_a_large_page_holds_the_fastest_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        add(tmp_path / "run", "1_allreduce", str(number), timed=timing(1.0 + number))
    monkeypatch.setattr("pkb.report.page.MOST_DETAILS", 2)
    html = page_of(tmp_path / "run").read_text()
    assert [f'id="detail-{at}"' in html for at in range(3)] == [True, False, True]
