"""Folders of problems from strangers: a mistake in a file is one line that names the file and the field."""

import os
import signal
from pathlib import Path

import pytest

from helpers.commands import check_mistake, run_pkb
from pkb.problems.declaration import is_ctrl_c
from pkb.problems.suite import Suite

GOOD = '''"""Adds [bold]numbers[/] of all ranks."""

from pkb import Problem, Size
from pkb.problems.cost import Cost, Link


def solution(tensor):
    return tensor


def inputs(case):
    return (case.randn(case.m, case.n),)


def cost(case):
    return {cost}


{before}
PROBLEM = {problem}
'''
PROBLEM = 'Problem(category="Mine", source="here", sizes={"tiny": Size(2, 2)}%s)'


def write(
    folder: Path, problem: str = PROBLEM % "", before: str = "", cost: str = "Cost(1.0, 1.0, Link(0.0, 0.0))"
) -> None:
    text = GOOD.replace("{before}", before).replace("{problem}", problem).replace("{cost}", cost)
    (folder / "1_mine.py").write_text(text)


def check_verbs(folder: Path, *says: str, verbs: tuple[str, ...] = ("list", "show", "prompt", "eval")) -> None:
    arguments = {
        "list": [],
        "show": ["1"],
        "prompt": ["1"],
        "eval": ["1", "--candidate", "reference", "--nproc", "2"],
        "inspect": ["1", "--nproc", "2"],
    }
    for verb in verbs:
        for text in says:
            check_mistake([verb, *arguments[verb], "--suite", str(folder)], text)


BROKEN = {
    "no Python": "def (",
    "a NUL": "x = 1\0",
    "no UTF-8": "# -*- coding: utf-8 -*-\nx = '\udcff'",
    "nested": "x = " + "(" * 5000 + ")" * 5000,
    "many operators": "x = " + "-" * 20_000 + "1",
    "exits": "import sys\nsys.exit(0)",
    "exits with a text": "raise SystemExit('\\x1b[2J gone')",
    "interrupts": "raise KeyboardInterrupt",
    "recurses": "def f():\n    f()\nf()",
    "a strange exception": "class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E",
    "raises": "raise RuntimeError('\\x1b[2J' + 'x' * 100000)",
    "no base": "class E(BaseException):\n    pass\nraise E",
    "imports nothing": "import nothing_of_the_kind",
    "no PROBLEM": "x = 1",
    "another PROBLEM": "PROBLEM = 17",
    "an odd PROBLEM": "class P:\n    def __bool__(self):\n        raise ValueError\nPROBLEM = P()",
    "no arguments": "from pkb import Problem\nPROBLEM = Problem()",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_cannot_be_loaded_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "1_mine.py").write_bytes(BROKEN[kind].encode(errors="surrogateescape"))
    check_verbs(tmp_path, "1_mine.py", verbs=("list", "show", "prompt"))


FIELDS = {
    "category": '"Mine"',
    "source": '"here"',
    "sizes": '{"tiny": Size(2, 2)}',
}
ODD = {
    "category": ["5", "None", "[1]"],
    "source": ["5"],
    "sizes": [
        "{}",
        "[1]",
        "None",
        '{"tiny": (2, 2)}',
        '{"tiny": Size(0, 2)}',
        '{"tiny": Size(-1, 2)}',
        '{"tiny": Size(10**30, 2)}',
        '{"tiny": Size(2.5, 2)}',
        '{"tiny": Size("a", 2)}',
        '{"paper": Size(2, 2)}',
        '{"tiny": Size(2, 2), 3: Size(2, 2)}',
    ],
    "requires": ["7", '{"x": 1}', "{1: len}"],
    "mutates": ["7", "(1,)"],
    "exact": ['"yes"'],
    "degenerate": ["1"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in ODD.items() for value in values])
def test_a_wrong_field_is_named(tmp_path: Path, field: str, value: str) -> None:
    fields = FIELDS | {field: value}
    write(tmp_path, f"Problem({', '.join(f'{name}={one}' for name, one in fields.items())})")
    check_verbs(tmp_path, "1_mine.py", f"the field {field} of PROBLEM", verbs=("list", "show"))


def test_functions_that_fail_are_named(tmp_path: Path) -> None:
    write(tmp_path, cost="1 / 0")
    check_verbs(tmp_path, "1_mine.py: cost raised ZeroDivisionError", verbs=("show",))
    write(tmp_path := make_folder(tmp_path, "b"), cost="17")
    check_verbs(tmp_path, "1_mine.py: cost returned int, not a Cost", verbs=("show",))
    write(tmp_path := make_folder(tmp_path, "c"), PROBLEM % ', requires={"m is large": lambda d: d.m / 0}')
    check_verbs(tmp_path, "1_mine.py: the condition 'm is large' raised ZeroDivisionError", verbs=("list", "show"))
    write(tmp_path := make_folder(tmp_path, "d"), before="del solution")
    check_verbs(tmp_path, "1_mine.py defines no function or class solution", verbs=("prompt", "inspect", "eval"))
    write(tmp_path := make_folder(tmp_path, "e"), before="def inputs(case):\n    return 1 / 0")
    check_verbs(tmp_path, "1_mine.py: inputs raised ZeroDivisionError", verbs=("inspect",))
    write(tmp_path := make_folder(tmp_path, "f"), before="MUTANTS = 3")
    check_verbs(tmp_path, "1_mine.py: MUTANTS is no dict", verbs=("inspect",))


def make_folder(base: Path, name: str) -> Path:
    """Return another folder: a file that was loaded is not loaded again in the same process."""
    folder = base / name
    folder.mkdir()
    if (base / "1_mine.py").exists():
        (base / "1_mine.py").unlink()
    return folder


def test_words_of_a_problem_are_only_words(tmp_path: Path) -> None:
    words = "'[/]\\x1b[2J\\u202e [link=file:///x]'"
    write(tmp_path, f"Problem(category={words}, source={words}, sizes={{'tiny': Size(2, 2), '[/]': Size(2, 2)}})")
    for verb in (["list"], ["list", "--json"], ["show", "1"], ["show", "1", "--json"]):
        ran = run_pkb(*verb, "--suite", tmp_path)
        assert ran.returncode == 0, ran.stderr
        assert "\x1b" not in ran.stdout
        assert "\u202e" not in ran.stdout


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop", "large"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "1_mine.py"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path)
        case "large":
            with path.open("wb") as file:
                file.truncate(3 << 30)
    check_verbs(tmp_path, "1_mine.py cannot be read", verbs=("list", "show"))


def test_two_files_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder)
    check_verbs(tmp_path, "a/1_mine.py", "b/1_mine.py have the same name", verbs=("list", "show"))


def test_numbers_that_are_none(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / f"{'9' * 60}_other.py").write_text("raise ValueError")
    assert Suite(tmp_path).stems == {"1_mine"}
    for key in ("9" * 5000, "²", f"1-{'9' * 5000}", "\x1b[2J"):
        check_mistake(["show", key, "--suite", str(tmp_path)], "no problem or category")
    check_mistake(["show", "1", "--suite", str(tmp_path), "--nproc", "10000000"], "--nproc")


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("level", "x", "level"),
        ("problem_id", -1, "problem_id"),
        ("name", None, "name or its code"),
        ("code", 5, "name or its code"),
    ],
)
def test_a_table_of_tasks_names_its_task(tmp_path: Path, column: str, value: object, says: str) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    row = {"code": "x = 1", "level": 1, "name": "../../x", "problem_id": 1} | {column: value}
    parquet.write_table(arrow.table({name: [one] for name, one in row.items()}), tmp_path / "t.parquet")
    check_mistake(["list", "--suite", str(tmp_path / "t.parquet")], f"t.parquet: task 1: its {says}")


def test_ctrl_c_is_no_mistake_of_the_file() -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        exec("raise KeyboardInterrupt")
    assert not is_ctrl_c(raised.value)
    with pytest.raises(KeyboardInterrupt) as pressed:
        signal.raise_signal(signal.SIGINT)
    assert is_ctrl_c(pressed.value)
