"""Finds problems: by number, by name, by category, in ranges. Adding one is adding its file."""

import difflib
import importlib.util
import re
import sys
from collections import defaultdict
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pkb.errors import UsageError
from pkb.problems.kernelbench import level_of, published_problem
from pkb.problems.kernelbench_files import listed, unpacked
from pkb.problems.problem import Problem

_PROBLEM_FILE = re.compile(r"\d+_[\w-]+\.py")
_SUITES = Path(__file__).parents[1] / "suites"
_RANGE = re.compile(r"(?:l?(\d+)/)?(\d+)-(\d+)")
_LEVELLED = re.compile(r"l\d+[/_]")
_EXTRAS = {"transformers": "kernelbench", "einops": "kernelbench"}
"""Modules that some problems need, and the extra that brings them."""


class Suite:
    """The problems in a folder and the folders below it: files named <number>_<name>.py.

    Where they lie in folders level1, level2, ..., numbers are counted anew in each: L1/19.
    """

    def __init__(self, folder: Path | str):
        self.folder = Path(folder).resolve()
        if not self._files:
            raise UsageError(f"no problem in {folder}; a suite holds files named <number>_<name>.py")

    def problems(self, category: str | None = None) -> list[Problem]:
        """All problems in order of their number, or those of one category."""
        return [load_file(path) for path in self._in(category)]

    def listed(self, category: str | None = None) -> list[Problem]:
        """The same, to look at: models are not imported, and what these import need not be there."""
        return [listed(path) or load_file(path) for path in self._in(category)]

    def load(self, key: str | int) -> Problem:
        """One problem, by number (13, L1/19), stem (13_gemm_allreduce) or name (gemm_allreduce)."""
        found = self._names.get(_key(str(key)), [])
        if len(found) > 1:
            raise UsageError(f"{key!r} may be any of {', '.join(map(_short, found))}; say which")
        if not found:
            raise UsageError(f"no problem or category {key!r}; {self._hint(str(key))}")
        return load_file(self._files[found[0]])

    def select(self, text: str) -> list[Problem]:
        """What a person types for several problems: `all`, `1-8,13`, `L1/1-20`, a name, a category, or a mixture."""
        chosen: dict[str, Problem] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            chosen |= {p.stem: p for p in self._select_one(part)}
        if not chosen:
            raise UsageError("no problem named; give a number, a range such as 1-8, a name, a category or `all`")
        return list(chosen.values())

    def categories(self) -> list[str]:
        return list(dict.fromkeys(p.category for p in self.listed()))

    def _in(self, category: str | None) -> list[Path]:
        if category is None:
            return [*self._files.values()]
        known = ((path, listed(path) or load_file(path)) for path in self._files.values())
        return [path for path, problem in known if _plain(problem.category) == _plain(category)]

    def _select_one(self, part: str) -> list[Problem]:
        if part == "all":
            return self.problems()
        if span := _RANGE.fullmatch(part.lower()):
            return self._range(part, int(span[1] or 0), range(int(span[2]), int(span[3]) + 1))
        if _key(part) in self._names:
            return [self.load(part)]
        return self.problems(category=part) or [self.load(part)]

    def _range(self, text: str, level: int, numbers: range) -> list[Problem]:
        inside = [path for path in self._files.values() if level_of(path) == level and _number(path) in numbers]
        if not inside:
            raise UsageError(f"no problem in {text}; {self._hint_at_suite(text) or self._extent()}")
        return [load_file(path) for path in inside]

    @cached_property
    def _files(self) -> dict[str, Path]:
        """By stem, in order."""
        found = [path for path in self.folder.rglob("*.py") if _PROBLEM_FILE.fullmatch(path.name)]
        # Beside its levels, a checkout has much else.
        chosen = [path for path in found if level_of(path)] or found
        return {_stem(path): path for path in sorted(chosen, key=lambda path: (level_of(path), _number(path)))}

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        """Every spelling of a problem, and the stems that it may stand for."""
        spellings: dict[str, list[str]] = defaultdict(list)
        for stem, path in self._files.items():
            number, _, name = path.stem.partition("_")
            level = level_of(path)
            own = {f"l{level}/{number}", f"{level}/{number}"} if level else set()
            for spelling in {stem.lower(), path.stem.lower(), number, name.lower(), *own}:
                spellings[spelling].append(stem)
        return dict(spellings)

    def _extent(self) -> str:
        known = [*map(_short, self._files)]
        return f"there are {known[0]} to {known[-1]} (`pkb list`)"

    def _hint_at_suite(self, key: str) -> str:
        has_levels = any(level_of(path) for path in self._files.values())
        return "" if has_levels or not _LEVELLED.match(key.lower()) else "KernelBench's need --suite kernelbench"

    def _hint(self, key: str) -> str:
        if elsewhere := self._hint_at_suite(key):
            return elsewhere
        known = list(self._names) + [_plain(category) for category in self.categories()]
        near = difflib.get_close_matches(_key(key), known, n=3, cutoff=0.4)
        return f"did you mean {' or '.join(near)}?" if near else "`pkb list` shows them all"


@cache
def load_file(path: Path) -> Problem:
    """The problem that a file declares, or that it is by its form."""
    spec = importlib.util.spec_from_file_location(f"pkb_problem_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} cannot be loaded: {type(error).__name__}: {error}{_remedy(error)}") from error
    problem: Any = getattr(module, "PROBLEM", None) or published_problem(module)
    if not isinstance(problem, Problem):
        raise UsageError(f"{path} declares no PROBLEM; docs/adding-a-problem.md shows what a file holds")
    return problem.bound_to(module, path)


@cache
def find_suite(name: str) -> Suite:
    """Return a shipped suite, a folder of problems, or a table of published tasks (.parquet)."""
    if (_SUITES / name).is_dir() and re.fullmatch(r"\w+", name):
        return Suite(_SUITES / name)
    return Suite(unpacked(Path(name)) if name.endswith(".parquet") else name)


def name_suite(problem: Problem) -> str:
    """Return the name under which `find_suite` finds the suite of a problem."""
    folder = problem.path.parent.parent if level_of(problem.path) else problem.path.parent
    return folder.relative_to(_SUITES).parts[0] if folder.is_relative_to(_SUITES) else str(folder)


def load_problem(key: str | int) -> Problem:
    """Load one problem of the shipped suites; a key with a level, such as L1/19, is KernelBench's."""
    return find_suite("kernelbench" if _LEVELLED.match(str(key).lower()) else "parallel").load(key)


def list_problems(category: str | None = None) -> list[Problem]:
    """Load the 87 multi-GPU problems in order, or those of one category."""
    return find_suite("parallel").problems(category)


def select_problems(text: str) -> list[Problem]:
    """Load the multi-GPU problems that a text such as `1-8,13` names."""
    return find_suite("parallel").select(text)


def _remedy(error: Exception) -> str:
    extra = _EXTRAS.get(str(getattr(error, "name", "")).partition(".")[0])
    return f"; install it with `pip install parallelkernelbench[{extra}]`" if extra else ""


def _stem(path: Path) -> str:
    return f"L{level_of(path)}_{path.stem}" if level_of(path) else path.stem


def _short(stem: str) -> str:
    parts = stem.split("_")
    return f"{parts[0]}/{parts[1]}" if parts[0].startswith("L") else parts[0]


def _number(path: Path) -> int:
    return int(path.stem.split("_")[0])


def _key(text: str) -> str:
    text = text.strip().removesuffix(".py")
    return str(int(text)) if text.isdigit() else text.lower()


def _plain(category: str) -> str:
    return re.sub(r"[\s_-]+", "_", category.strip().lower())
