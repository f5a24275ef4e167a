"""Files from strangers: whatever they hold, one line says what is wrong; nothing is executed, awaited or steered."""

import copy
import csv
import io
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from helpers.commands import check_mistake, run_pkb
from helpers.made import add, timing
from helpers.made_records import record, timed_record
from pkb.analyse import read_rows
from pkb.record import ControlTimes, Evidence, KernelTime, ProfileSummary, Record
from pkb.runs import RECORD, Damage, Run, read_record, save_record
from pkb.screen import ScreenFinding, Severity
from pkb.trial import Trial, TrialKind

SECONDS = 20.0
"""For one command in this process; each takes a fraction of a second on an idle machine."""
MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
STEERING = "\x1b[2J\x07\r\x9b31m\u202e\u2066\ud800\udfff\x00"
ODD: list[Any] = [
    None,
    True,
    "",
    STEERING,
    MARKUP,
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1",
    "@SUM(A1)",
    "a|b`c`[d](javascript:alert(1))\n# e",
    "../../../x",
    "/tmp/x",
    "x" * 100_000,
    "9" * 400,
    "0001-01-01T00:00:00",
    -1,
    0,
    1,
    10_000_000,
    1 << 63,
    10**400,
    -1.5,
    0.0,
    5e-324,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    [],
    {},
    [[]],
    [[[]]],
    [1, 2, 3],
    [3.0, 1.0],
    [None, None],
    [0.0] * 5000,
    [[[1.0, 2.0]], [[1.0]]],
    {"__proto__": 1, "constructor": {}, STEERING: STEERING},
    {"reference": [], "candidate": [[]]},
    json.loads("[" * 300 + "]" * 300),
    json.loads('{"a":' * 300 + "1" + "}" * 300),
]


def make_full_record() -> Record:
    """Return a record in which every part is there."""
    timed = timed_record()
    assert timed.timing
    spans = timed.timing.blocks_us
    control = ControlTimes(100.0, 100.0, 1.0, (0.9, 1.1), spans)
    finding = ScreenFinding("x", Severity.WARN, 3, "is odd", "torch.x", "do not")
    evidence = Evidence("values", "oracle", 1, [0, 1], Trial(TrialKind.PROBE), 1, 2, "load", "ValueError", "no", ["a"])
    profile = ProfileSummary("kernels", 3, 10, [KernelTime("k", 3, 1.5, 0.5)], {"0": 0.5}, ["note"])
    fields = json.loads(timed.to_json()) | {"library_calls": {"mm": 1}, "seconds": {"load": 1.0}}
    fields["timing"]["control"] = json.loads(json.dumps(vars(control)))
    found = Record.from_json(json.dumps(fields))
    return Record(**{**vars(found), "evidence": evidence, "profile": profile, "warnings": [finding]})


FULL = json.loads(make_full_record().to_json())


def list_places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if isinstance(value, dict):
        for key in value:
            yield from list_places(value[key], (*place, key))
    elif isinstance(value, list) and value:
        yield from list_places(value[0], (*place, 0))


PLACES = [place for place in list_places(FULL) if place]


def put(fields: Any, place: tuple[Any, ...], value: Any) -> None:
    for key in place[:-1]:
        fields = fields[key]
    fields[place[-1]] = value


def make_damaged(changes: list[tuple[tuple[Any, ...], Any]]) -> bytes:
    fields = copy.deepcopy(FULL)
    for place, value in changes:
        try:
            put(fields, place, copy.deepcopy(value))
        except (TypeError, KeyError, IndexError):
            continue
    return json.dumps(fields).encode()


def write(folder: Path, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).write_bytes(content)
    return folder / RECORD


def run_quickly(*words: object) -> Any:
    started = time.monotonic()
    ran = run_pkb(*words)
    assert time.monotonic() - started < SECONDS
    said = ran.stdout + ran.stderr
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", said)
    assert "Traceback" not in said
    return ran


# Field by field. ------------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD)), min_size=1, max_size=3))
def test_both_readers_take_or_refuse_any_value_in_any_field(
    tmp_path: Path, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    path = write(tmp_path / "1_allreduce" / "odd", make_damaged(changes))
    started = time.monotonic()
    found, rows = read_record(path), read_rows([tmp_path])
    assert time.monotonic() - started < SECONDS
    assert isinstance(found, Record | Damage)
    assert len(rows.rows) + len(rows.damaged) == 1
    # What can be read whole has a row, and can be written and read again.
    if isinstance(found, Record):
        assert rows.rows
        assert Record.from_json(found.to_json()) == found
    for damage in [*rows.damaged, *([found] if isinstance(found, Damage) else [])]:
        assert str(damage).startswith(str(path))
        assert str(damage).isprintable()


@settings(max_examples=200, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    at=st.floats(0, 1),
    removed=st.integers(0, 50),
    added=st.one_of(st.binary(max_size=20), st.sampled_from([b"[" * 50_000, b'"', b"\\u0000", b"1e999", b"NaN", b"}"])),
)
def test_both_readers_take_or_refuse_any_bytes(tmp_path: Path, at: float, removed: int, added: bytes) -> None:
    whole = json.dumps(FULL).encode()
    start = int(at * len(whole))
    path = write(tmp_path / "1_allreduce" / "odd", whole[:start] + added + whole[start + removed :])
    found, rows = read_record(path), read_rows([tmp_path])
    assert isinstance(found, Record | Damage)
    assert len(rows.rows) + len(rows.damaged) == 1


@settings(
    max_examples=3,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    batch=st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD)), min_size=40, max_size=40),
    number=st.integers(0, 1 << 60),
)
def test_every_verb_survives_a_run_of_odd_records(
    tmp_path: Path, batch: list[tuple[tuple[Any, ...], Any]], number: int
) -> None:
    run = tmp_path / str(number)
    save_record(run / "1_allreduce" / "good", record())
    for name, change in enumerate(batch):
        write(run / "1_allreduce" / f"{name}{'=-@'[name % 3]}", make_damaged([change]))
    assert run_quickly("report", run, "--out", run / "out").returncode == 0
    check_files(run / "out")
    assert run_quickly("export", run, "--out", run / "out.jsonl").returncode == 0
    assert run_quickly("export", run, "--out", run / "out.parquet").returncode == 0
    for file in ("out.jsonl", "out.parquet"):
        ran = run_quickly("import", run / file, "--run", run / f"back {file}", "--skip-damaged")
        assert ran.returncode == 0, ran.stderr
    assert run_quickly("roofline", "1", "--run", run).returncode == 0


def check_files(out: Path) -> None:
    """Check that a report's files are what their endings say, and that nothing in them is more than text."""
    html = (out / "index.html").read_text()
    assert html.count("<script") == html.count("</script>")
    assert "<img" not in html
    assert "<script>alert" not in html
    json.loads((out / "report.json").read_text(), parse_constant=pytest.fail)
    for line in csv.reader(io.StringIO((out / "report.csv").read_text())):
        assert not [cell for cell in line if re.match(r"\s*[=+@]|\s*-\D", cell)]
    assert "<script" not in (out / "report.md").read_text().replace(r"\<", "")


# The explicit list. ---------------------------------------------------------------------------------------------------

WORSE: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "ranks without end": (("setup", "world"), 10_000_000, "setup.world"),
    "no ranks": (("setup", "world"), 0, "setup.world"),
    "a negative speed-up": (("timing", "speedup"), -2.0, "timing.speedup"),
    "a speed-up of 0": (("timing", "speedup"), 0, "timing.speedup"),
    "a speed-up that overflows": (("timing", "speedup"), 1e308, "timing.speedup"),
    "an integer that no float holds": (("timing", "speedup"), 10**400, "timing.speedup"),
    "NaN": (("timing", "reference_us"), float("nan"), "timing.reference_us"),
    "an interval upside down": (("timing", "interval"), [3.0, 1.0], "timing.interval"),
    "a size that is no int64": (("setup", "m"), 1 << 63, "setup.m"),
    "an unknown verdict": (("verdict",), "MAYBE", "verdict is 'MAYBE'"),
    "a verdict that steers": (("verdict",), STEERING, "verdict"),
    "a text that is none": (("candidate", "backend"), {"a": 1}, "candidate.backend"),
    "facts that are none": (("environment",), [1], "'environment'"),
}


@pytest.mark.parametrize("kind", WORSE)
def test_a_field_is_named_by_every_reader(tmp_path: Path, kind: str) -> None:
    place, value, says = WORSE[kind]
    content = make_damaged([(place, value)])
    path = write(tmp_path / "run" / "1_allreduce" / "odd", content)
    found = read_record(path)
    assert isinstance(found, Damage)
    assert says in found.what
    check_mistake(["report", str(tmp_path / "run")], says)
    (tmp_path / "x.jsonl").write_bytes(content.replace(b"\n", b""))
    check_mistake(["import", str(tmp_path / "x.jsonl"), "--run", str(tmp_path / "in")], "x.jsonl: entry 1: ")
    check_mistake(["import", str(tmp_path / "x.jsonl"), "--run", str(tmp_path / "in")], says)
    assert not (tmp_path / "in").exists()


def make_line(**own: Any) -> bytes:
    return json.dumps(FULL | own).encode()


TWICE = b'{"schema": 3, "schema": 3}'
LINES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "has no entry"),
    "blank": (b" \r\n\n", "has no entry"),
    "binary": (bytes(range(256)), "entry 1"),
    "no UTF-8": (b'{"a": "\xff"}', "can't decode"),
    "UTF-16": (json.dumps(FULL).encode("utf-16"), "entry 1"),
    "deep": (b"[" * 200_000, "entry 1: not JSON: nested too deeply"),
    "deep objects": (b'{"a":' * 200_000, "entry 1: not JSON: nested too deeply"),
    "a key twice": (TWICE, "the key 'schema' appears twice"),
    "digits": (b'{"schema": ' + b"9" * 5000 + b"}", "entry 1"),
    "a number": (b"17", "not an object"),
    "older": (make_line(schema=1), "judge the candidate again"),
    "newer": (make_line(schema=10**50), "update pkb"),
    "facts": (make_line(facts=[1]), "facts"),
    "deep facts": (make_line(facts=json.loads('{"a":' * 100 + "1" + "}" * 100)), "facts"),
    "source": (make_line(source=["import os"]), "source"),
    "run": (make_line(run=7), "run"),
    "a long name": (make_line(sample="x" * 5000), "sample is"),
    "a name in 4 bytes": (make_line(sample="\U0001f600" * 100), "sample is"),
    "a name that steers": (make_line(sample=STEERING), "sample is"),
    "a surrogate": (make_line(sample="\ud800"), "sample is"),
    "above": (make_line(sample=".."), "sample is"),
    "absolute": (make_line(run="/tmp/x", sample="y"), "run is"),
    "a NUL": (make_line(sample="a\0b"), "sample is"),
    "an unknown problem": (make_line(problem="not a problem"), "problem is"),
    "a number that is none": (make_line(problem="9" * 30 + "_x"), "problem is"),
    "a long problem": (make_line(problem="1_" + "x" * 300), "problem is"),
}


@pytest.mark.parametrize("kind", LINES)
def test_an_import_names_the_entry_and_writes_nothing(tmp_path: Path, kind: str) -> None:
    content, says = LINES[kind]
    (tmp_path / "x.jsonl").write_bytes(content)
    ran = run_quickly("import", tmp_path / "x.jsonl", "--run", tmp_path / "in")
    assert ran.returncode == 2
    assert says in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]


def test_windows_files_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    line = json.dumps(FULL).encode()
    (tmp_path / "x.jsonl").write_bytes(b"\xef\xbb\xbf" + line + b"\r\n\r\n" + line + b"\r\n")
    assert "2 records added" in run_pkb("import", tmp_path / "x.jsonl", "--run", tmp_path / "in").stdout


def test_a_text_that_no_name_needs_comes_in_as_text(tmp_path: Path) -> None:
    fields = copy.deepcopy(FULL) | {"reason": MARKUP + STEERING, "category": STEERING, "source": "\ud800 \udc80\n"}
    (tmp_path / "x.jsonl").write_text(json.dumps(fields))
    assert run_quickly("import", tmp_path / "x.jsonl", "--run", tmp_path / "in").returncode == 0
    assert run_quickly("report", tmp_path / "in", "--out", tmp_path / "out").returncode == 0
    check_files(tmp_path / "out")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "loop", "socket"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, kind: str, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    make_odd_file(path, kind)
    ran = run_quickly("import", path, "--run", tmp_path / "in")
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert str(path) in ran.stderr


def make_odd_file(path: Path, kind: str) -> None:
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path)
        case "socket":
            import socket

            where = os.getcwd()
            os.chdir(path.parent)
            socket.socket(socket.AF_UNIX).bind(path.name)
            os.chdir(where)


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "loop", "socket", "link"])
def test_odd_files_in_a_run_are_named_and_skipped(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps(FULL))
    run = tmp_path / "run"
    good = add(run, "1_allreduce", "good", timed=timing(2.0))
    (good / "logs" / "rank_0.txt").unlink()
    (run / "1_allreduce" / "odd").mkdir()
    for path in (run / "1_allreduce" / "odd" / RECORD, run / "run.json", good / "logs" / "rank_0.txt"):
        path.symlink_to(secret) if kind == "link" else make_odd_file(path, kind)
    (good / "candidate.py").unlink()
    (good / "candidate.py").symlink_to(secret)
    ran = run_quickly("report", run, "--out", tmp_path / "out")
    assert ran.returncode == 0
    assert "2 files cannot be read and are left out" in ran.stdout
    assert "odd/record.json" in ran.stdout
    assert "made up" not in json.dumps([one.source for one in Run(run).list_samples()])
    ran = run_quickly("export", run, "--out", tmp_path / "out.jsonl")
    assert ran.returncode == 0
    assert "skipped, damaged" in ran.stderr
    assert "made up" not in (json.loads((tmp_path / "out.jsonl").read_text())["source"] or "")


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    for path in (tmp_path / "x.jsonl", tmp_path / "run" / "1_allreduce" / "odd" / RECORD, tmp_path / "x.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(3 << 30)
    for words in (
        ["import", str(tmp_path / "x.jsonl"), "--run", str(tmp_path / "in")],
        ["report", str(tmp_path / "run")],
        ["check", str(tmp_path / "x.py")],
        ["eval", "1", "--candidate", str(tmp_path / "x.py")],
    ):
        check_mistake(words, " MiB")


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "loop"])
@pytest.mark.parametrize("verb", ["check", "eval"])
def test_a_candidate_that_is_no_file(tmp_path: Path, verb: str, kind: str) -> None:
    path = tmp_path / "x.py"
    make_odd_file(path, kind)
    words = ["check", str(path)] if verb == "check" else ["eval", "1", "--candidate", str(path)]
    check_mistake(words, str(path))


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    (run / "2_allgather").mkdir(parents=True)
    for link in (run / "1_allreduce", run / "2_allgather" / "mine", run / "report"):
        link.symlink_to(outside, target_is_directory=True)
    for problem in ("1_allreduce", "2_allgather"):
        (tmp_path / "x.jsonl").write_bytes(record(problem).to_json(indent=None).encode())
        check_mistake(["import", str(tmp_path / "x.jsonl"), "--run", str(run)], "is a symbolic link")
    save_record(run / "3_broadcast" / "good", record("3_broadcast"))
    check_mistake(["report", str(run)], "report is a symbolic link")
    assert run_quickly("report", run, "--out", tmp_path / "out").stdout.count("symbolic link") == 2
    several = [make_line(run=name, problem="1_allreduce", sample="s") for name in ("a", "b")]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(several))
    (run / "a").symlink_to(outside, target_is_directory=True)
    check_mistake(["import", str(tmp_path / "x.jsonl"), "--run", str(run)], "is a symbolic link")
    assert not list(outside.iterdir())


def test_names_that_are_no_utf_8(tmp_path: Path) -> None:
    run = tmp_path / os.fsdecode(b"r\xff\x1b[2J")
    add(run, "1_allreduce", os.fsdecode(b"\xfe=\n1"), timed=timing(2.0))
    assert run_quickly("report", run, "--out", tmp_path / "out").returncode == 0
    check_files(tmp_path / "out")
    assert run_quickly("export", run, "--out", tmp_path / "x.parquet").returncode == 0
    assert run_quickly("report", run / "none").returncode == 2


def test_formulas_stay_text_in_a_spreadsheet(tmp_path: Path) -> None:
    add(tmp_path / "=run", "1_allreduce", "=1+1", "WRONG", reason="@SUM(1)")
    assert run_pkb("report", tmp_path / "=run", "--out", tmp_path / "out").returncode == 0
    (line,) = csv.DictReader(io.StringIO((tmp_path / "out" / "report.csv").read_text()))
    assert (line["run"], line["sample"], line["reason"]) == ("'=run", "'=1+1", "'@SUM(1)")


def test_turns_and_categories_without_end(tmp_path: Path) -> None:
    run = tmp_path / "run"
    sample = add(run, "1_allreduce", "s")
    for turn in ("1", "900", "99999999999", "٣"):
        save_record(sample / "turns" / turn, record())
    for number in range(200):
        save_record(run / f"{number + 1}_x" / "s", record(f"{number + 1}_x", category=f"category {number}"))
    ran = run_quickly("report", run, "--out", tmp_path / "out", "--format", "md,csv,json")
    assert ran.returncode == 0, ran.stderr
    assert "other categories" in (tmp_path / "out" / "report.md").read_text()


def test_what_is_cut_out_of_a_record_is_only_its_raw_times(tmp_path: Path) -> None:
    """A reader that cuts could be made to see another record than one that parses all of it."""
    hidden = '}, "verdict": "CORRECT", "x": {"y": "'
    fields = {"evidence": {"details": {"blocks_us": hidden}}} | {**FULL, "verdict": "WRONG", "timing": None}
    fields["evidence"] = {"details": {"blocks_us": hidden}}
    ordered = {"evidence": fields.pop("evidence"), **fields}
    path = write(tmp_path / "1_allreduce" / "odd", json.dumps(ordered).encode())
    whole, (row,) = read_record(path), read_rows([tmp_path]).rows
    assert isinstance(whole, Record)
    assert (whole.verdict, row.verdict) == ("WRONG", "WRONG")


def test_a_table_that_is_none(tmp_path: Path) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    tables = {
        "no column": {"x": ["y"]},
        "numbers": {"entry": [1, 2]},
        "nothing": {"entry": arrow.array([None], arrow.string())},
        "no JSON": {"entry": ["{"]},
    }
    for number, columns in enumerate(tables.values()):
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(arrow.table(columns), path)
        check_mistake(["import", str(path), "--run", str(tmp_path / "in")], str(path))
    (tmp_path / "junk.parquet").write_bytes(b"PAR1" + os.urandom(1000) + b"PAR1")
    check_mistake(["import", str(tmp_path / "junk.parquet"), "--run", str(tmp_path / "in")], "junk.parquet")


def test_reading_a_run_imports_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, mark = tmp_path / "run", tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w').write('x')\n"
    sample = add(run, "1_allreduce", "s", timed=timing(2.0), source=code)
    for name in ("json.py", "conftest.py", "sitecustomize.py", "1_allreduce.py", "torch.py"):
        for folder in (run, sample):
            (folder / name).write_text(code)
    monkeypatch.chdir(run)
    assert run_quickly("report", run, "--out", tmp_path / "out").returncode == 0
    assert run_quickly("export", ".", "--out", tmp_path / "x.jsonl").returncode == 0
    assert run_quickly("import", tmp_path / "x.jsonl", "--run", tmp_path / "in").returncode == 0
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "not JSON"),
        (b"[]", "not an object"),
        (b'{"cost_usd": -1e9}', "cost_usd"),
        (b'{"cost_usd": "1"}', "cost_usd"),
        (b'{"cost_usd": NaN}', "sample.json"),
        (b'{"asked": 3}', "asked"),
        (b'{"candidate": []}', "candidate"),
        (b'{"notes": [1]}', "notes"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_run_that_is_taken_up_names_its_damaged_samples(tmp_path: Path, content: bytes, says: str) -> None:
    folder = tmp_path / "1_allreduce" / "openai-x-1"
    folder.mkdir(parents=True)
    (folder / "sample.json").write_bytes(content)
    words = ["generate", "1", "--model", "openai/x", "--run", str(tmp_path), "--dry"]
    check_mistake(words, says)
    check_mistake(words, "sample.json")


def test_a_claim_does_not_empty_what_a_link_points_to(tmp_path: Path) -> None:
    from pkb.generate.sample_files import Place

    mine = tmp_path / "mine"
    mine.write_text("precious")
    place = Place(tmp_path / "run", "1_allreduce", "openai/x", 1)
    place.folder.mkdir(parents=True)
    (place.folder / ".claim").symlink_to(mine)
    with pytest.raises(OSError, match="symbolic"), place.claim():
        pass
    assert mine.read_text() == "precious"
