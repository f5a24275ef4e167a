"""Read what a problem file declares without running the rest of it, and so without torch; check what is declared."""

import ast
import dis
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pkb.base.printable import clean_line
from pkb.errors import UsageError
from pkb.problems.problem import ASPECTS, Problem
from pkb.problems.size import Size
from pkb.problems.visible_source import find_statements

_TEXTS = ("category", "source", "degenerate")
_FLAGS = ("exact", "exact_sums")
_NAMES = ("mutates", "may_overwrite")
_TABLES = ("MUTANTS", "EQUIVALENT")
_MOST_ELEMENTS = 1 << 40
"""The most rows or columns of a size."""
_ADVICE = "docs/adding-a-problem.md shows what a file holds"


def read_declaration(path: Path) -> Problem | None:
    """Return the problem with its title, sizes, conditions and cost: to be listed or shown, not posed.

    Returns None where that takes more than PROBLEM, `cost` and the statements that these two use.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, str(path))
        body = find_statements(tree, text, ("PROBLEM", "cost"))
        module = ModuleType(f"pkb_declaration_{path.stem}", ast.get_docstring(tree))
        module.__file__ = str(path)
        exec(compile(ast.Module(body, type_ignores=[]), str(path), "exec"), vars(module))
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        # To load the file, as a whole, will either work or say what is wrong with it.
        return None
    problem = vars(module).get("PROBLEM")
    return problem.bind(module, path) if isinstance(problem, Problem) else None


def check_fields(problem: Problem, path: Path) -> None:
    """Raise UsageError, which names the file and the field, where PROBLEM holds something of another type."""
    fields = vars(problem)
    checks: dict[str, bool] = {name: isinstance(fields[name], str) for name in _TEXTS}
    checks |= {name: isinstance(fields[name], bool) for name in _FLAGS}
    checks |= {name: _are_names(fields[name]) for name in _NAMES}
    checks["requires"] = isinstance(problem.requires, Mapping) and all(
        isinstance(sentence, str) and callable(holds) for sentence, holds in problem.requires.items()
    )
    checks["deviations"] = _are_texts(problem.deviations, ASPECTS)
    checks |= {name: _are_constants(fields[name]) for name in ("tiny", "hidden") if problem.builds}
    checks["sizes"] = problem.builds or _are_sizes(problem.sizes)
    for name, is_right in checks.items():
        if not is_right:
            shown = clean_line(repr(fields[name]), 80)
            raise UsageError(f"{path}: the field {name} of PROBLEM cannot be {shown}; {_ADVICE}")


def check_module(problem: Problem, path: Path) -> None:
    """Raise UsageError, which names the file, where the file lacks a function that every problem has."""
    module = problem.module
    for name in problem.functions:
        if not callable(getattr(module, name, None)):
            raise UsageError(f"{path} defines no function or class {name}; {_ADVICE}")
    for name in _TABLES:
        if not isinstance(getattr(module, name, {}), Mapping):
            raise UsageError(f"{path}: {name} is no dict; {_ADVICE}")
    if not isinstance(module.__doc__, str | None):
        raise UsageError(f"{path}: __doc__ is no text; {_ADVICE}")


def describe_raised(error: BaseException) -> str:
    """Return an exception in one line, even one that cannot be turned into a text."""
    try:
        return clean_line(f"{type(error).__name__}: {error}", 1000)
    except Exception:
        return type(error).__name__


def is_ctrl_c(error: BaseException) -> bool:
    """Return whether a user ended the process with Ctrl+C; a file can also raise KeyboardInterrupt by itself."""
    trace = error.__traceback__
    if not isinstance(error, KeyboardInterrupt) or trace is None:
        return False
    while trace.tb_next:
        trace = trace.tb_next
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] != "RAISE_VARARGS"


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(name, str) for name in value)


def _are_texts(table: Any, names: Collection[str]) -> bool:
    return isinstance(table, Mapping) and all(name in names and isinstance(table[name], str) for name in table)


def _are_constants(value: Any) -> bool:
    return value is None or (isinstance(value, Mapping) and all(isinstance(name, str) for name in value))


def _are_sizes(sizes: Any) -> bool:
    return isinstance(sizes, Mapping) and "tiny" in sizes and all(map(_is_size, sizes, sizes.values()))


def _is_size(name: Any, size: Any) -> bool:
    if not isinstance(name, str) or not isinstance(size, Size):
        return False
    return all(type(length) is int and 0 < length <= _MOST_ELEMENTS for length in (size.m, size.n))
