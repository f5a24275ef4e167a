"""How records, runs, problems and candidates read in a shell and in a notebook, and as data frames."""

import math
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import pkb
from helpers.made import add, timing
from helpers.made_records import record, timed_record
from pkb.analyse import read_rows
from pkb.display import format_duration, format_ratio, format_speedup
from pkb.record import CandidateFacts, Environment, Evidence

ATTACK = (
    '</pre></td></table><script>alert(1)</script><img src=x onerror="alert(1)">&amp;$\\href{javascript:alert(1)}{x}$'
)


class Reader(HTMLParser):
    """The tags and the text of a piece of HTML. It fails where tags do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(shown: Any) -> Reader:
    return Reader(shown._repr_html_())


@pytest.mark.parametrize(
    ("speeds", "text"),
    [
        ((1.519, 1.482, 1.551), "1.52x (1.48-1.55)"),
        ((0.0046, 0.0041, 0.0052), "0.0046x (0.0041-0.0052)"),
        ((123.4, 99.9, 1234.0), "123x (99.9-1.23e+03)"),
        ((1e-9, 1e-9, 1e-9), "1e-09x (1e-09-1e-09)"),
    ],
)
def test_speedups_have_significant_digits(speeds: tuple[float, float, float], text: str) -> None:
    assert format_speedup(*speeds) == text
    assert format_speedup(*speeds, comparable=False) == f"{text}, CPU times"


def test_figures_are_short() -> None:
    ratios = [format_ratio(value) for value in (0.000456, 0.0123, 0.5, 1.005, 9.949, 12.34, 345.6)]
    assert ratios == ["0.00046x", "0.012x", "0.50x", "1.00x", "9.95x", "12.3x", "346x"]
    durations = [format_duration(us) for us in (0.5, 12.345, 999.4, 999.6, 1234567)]
    assert durations == ["0.500 us", "12.3 us", "999 us", "1.00 ms", "1.23 s"]


def test_a_record_says_in_one_line_what_came_out() -> None:
    assert repr(record(verdict="WRONG")) == "<Record 1_allreduce mine: WRONG; as made>"
    assert repr(timed_record()) == "<Record 1_allreduce mine: CORRECT FASTER 2.00x (1.80-2.20); as made>"
    on_cpu = timed_record(environment=Environment("cpu"))
    assert "2.00x (1.80-2.20), CPU times" in repr(on_cpu)
    assert "2.00x (1.80-2.20), CPU times FASTER" in read(on_cpu).text


def test_a_record_in_a_notebook_shows_the_evidence_and_runs_nothing() -> None:
    evidence = Evidence(ATTACK, rank=1, traceback=[ATTACK], errors=[ATTACK], stacks={"0": [ATTACK]}, log=f"a\n{ATTACK}")
    shown = read(
        record(verdict="CRASH", reason=ATTACK, evidence=evidence, candidate=CandidateFacts(ATTACK, ATTACK, "0"))
    )
    assert not {"script", "img"} & {*shown.tags}
    assert shown.tags.count("details") == 4
    assert shown.text.count(ATTACK) == 8
    assert "rank 1" in shown.text
    assert 'class="tex2jax_ignore mathjax_ignore"' in record()._repr_html_()
    # What turns or hides text does not reach the notebook either.
    assert "\u202e" not in record(reason="a\u202eb")._repr_html_()


@pytest.mark.parametrize("key", [13, "L1/19"])
def test_a_problem_shows_its_reference(key: str | int) -> None:
    problem = pkb.load_problem(key)
    assert repr(problem).startswith(f"<Problem {problem.stem}: {problem.category}; sizes ")
    assert len(repr(problem)) < 120
    assert problem.show_source() in read(problem).text


def test_candidates_and_suites_are_short_too() -> None:
    source = b"import triton\n" + 1000 * b"#\n"
    assert repr(pkb.Candidate.of(source, "mine")) == "<Candidate mine: triton, 2014 bytes>"
    assert repr(pkb.load_problem(1)) in repr([pkb.load_problem(1)])
    assert repr(pkb.Suite(Path(pkb.__file__).parent / "suites" / "parallel")).startswith("<Suite parallel: 87 problems")


def make_run(folder: Path) -> pkb.Run:
    add(folder, "1_allreduce", "fast", timed=timing(2.0))
    add(folder, "1_allreduce", "wrong", "WRONG", reason=ATTACK)
    add(folder, "13_gemm_allreduce", "slow", timed=timing(0.5), platform="cpu")
    return pkb.Run(folder)


def test_a_run_lists_its_samples(tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine")
    assert repr(run) == f"<Run mine: 3 samples of 2 problems, in {tmp_path / 'mine'}>"
    shown = read(run)
    assert shown.tags.count("tr") == 4
    assert "2.00x" in shown.text
    assert "CPU times" in shown.text
    assert ATTACK in shown.text
    assert "script" not in shown.tags
    missing = pkb.Run(tmp_path / "missing")
    assert "0 samples" in repr(missing)
    assert read(missing).tags.count("tr") == 1


def test_runs_become_data_frames(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    run = make_run(tmp_path / "mine")
    frame, other = run.to_pandas(), run.to_polars()
    for found in (frame, other):
        assert list(found.columns)[:5] == ["run", "model", "backend", "suite", "problem"]
        assert list(found["verdict"]) == ["CORRECT", "WRONG", "CORRECT"]
        assert list(found["comparable"]) == [True, True, False]
    assert frame["speedup"].dtype == "float64"
    assert math.isnan(frame["speedup"][1])
    assert other["speedup"][1] is None
    assert other.schema["m"] == polars.Int64
    both = read_rows([tmp_path / "mine", make_run(tmp_path / "theirs").folder]).to_pandas()
    assert both.groupby("run")["verdict"].count().to_dict() == {"mine": 3, "theirs": 3}
    (tmp_path / "empty").mkdir()
    empty = pkb.Run(tmp_path / "empty").to_pandas()
    assert isinstance(empty, pandas.DataFrame)
    assert list(empty.columns) == list(frame.columns)
    assert pkb.Run(tmp_path / "empty").to_polars().shape == (0, len(frame.columns))


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_without_the_package_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(pkb.UsageError, match=f"pip install {package}"):
        getattr(make_run(tmp_path / "mine"), f"to_{package}")()
