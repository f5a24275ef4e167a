"""Finds problems: by number, by name, by category, in ranges. Adding one is adding its file."""

import difflib
import importlib
import re
from functools import cache
from pathlib import Path

from pkb.errors import UsageError
from pkb.problem import Problem

SUITE = Path(__file__).parent / "suites" / "parallel"
_PROBLEM_FILE = re.compile(r"\d+_\w+\.py")


def problems(category: str | None = None) -> list[Problem]:
    """All problems in order of their number, or those of one category."""
    everything = [_load(stem) for stem in _files()]
    return everything if category is None else [p for p in everything if _plain(p.category) == _plain(category)]


def load(key: str | int) -> Problem:
    """One problem, by number (13), stem (13_gemm_allreduce) or name (gemm_allreduce)."""
    return _load(_stem(str(key)))


def select(text: str) -> list[Problem]:
    """What a person types for several problems: `all`, `1-8,13`, a name, a category, or a mixture."""
    chosen: dict[str, Problem] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        chosen |= {p.stem: p for p in _select_one(part)}
    if not chosen:
        raise UsageError("no problem named; give a number, a range such as 1-8, a name, a category or `all`")
    return list(chosen.values())


def categories() -> list[str]:
    return list(dict.fromkeys(p.category for p in problems()))


def _select_one(part: str) -> list[Problem]:
    if part == "all":
        return problems()
    if span := re.fullmatch(r"(\d+)-(\d+)", part):
        return _range(int(span[1]), int(span[2]))
    if _key(part) in _names():
        return [load(part)]
    return problems(category=part) or [load(part)]


def _range(first: int, last: int) -> list[Problem]:
    inside = [stem for stem in _files() if first <= int(stem.split("_")[0]) <= last]
    if not inside:
        numbers = [int(stem.split("_")[0]) for stem in _files()]
        raise UsageError(
            f"no problem in {first}-{last}; numbers run from {min(numbers)} to {max(numbers)} (`pkb list`)"
        )
    return [_load(stem) for stem in inside]


@cache
def _files() -> dict[str, Path]:
    found = {path.stem: path for path in SUITE.rglob("*.py") if _PROBLEM_FILE.fullmatch(path.name)}
    return dict(sorted(found.items(), key=lambda item: int(item[0].split("_")[0])))


@cache
def _names() -> dict[str, str]:
    """Every spelling of a problem, and the stem it stands for."""
    spellings: dict[str, str] = {}
    for stem in _files():
        number, _, name = stem.partition("_")
        spellings |= {stem.lower(): stem, number: stem, name.lower(): stem}
    return spellings


@cache
def _load(stem: str) -> Problem:
    path = _files()[stem]
    package = ".".join(path.relative_to(SUITE.parent.parent).with_suffix("").parts)
    module = importlib.import_module(f"pkb.{package}")
    return module.PROBLEM.bound_to(module, path)


def _stem(key: str) -> str:
    if _key(key) in _names():
        return _names()[_key(key)]
    near = difflib.get_close_matches(_key(key), list(_names()) + [_plain(c) for c in categories()], n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "`pkb list` shows them all"
    raise UsageError(f"no problem or category {key!r}; {hint}")


def _key(text: str) -> str:
    text = text.strip().removesuffix(".py")
    return str(int(text)) if text.isdigit() else text.lower()


def _plain(category: str) -> str:
    return re.sub(r"[\s_-]+", "_", category.strip().lower())
