"""Finds problems: by number, by name, by category, in ranges. Adding one is adding its file."""

import difflib
import importlib.util
import re
import sys
from functools import cache, cached_property
from pathlib import Path

from pkb.errors import UsageError
from pkb.problem import Problem

_PROBLEM_FILE = re.compile(r"\d+_\w+\.py")


class Suite:
    """The problems in a folder and the folders below it: files named <number>_<name>.py."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder).resolve()
        if not self._files:
            raise UsageError(f"no problem in {folder}; a suite holds files named <number>_<name>.py")

    def problems(self, category: str | None = None) -> list[Problem]:
        """All problems in order of their number, or those of one category."""
        everything = [load_file(path) for path in self._files.values()]
        return everything if category is None else [p for p in everything if _plain(p.category) == _plain(category)]

    def load(self, key: str | int) -> Problem:
        """One problem, by number (13), stem (13_gemm_allreduce) or name (gemm_allreduce)."""
        found = self._names.get(_key(str(key)))
        if found is None:
            raise UsageError(f"no problem or category {key!r}; {self._hint(str(key))}")
        return load_file(self._files[found])

    def select(self, text: str) -> list[Problem]:
        """What a person types for several problems: `all`, `1-8,13`, a name, a category, or a mixture."""
        chosen: dict[str, Problem] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            chosen |= {p.stem: p for p in self._select_one(part)}
        if not chosen:
            raise UsageError("no problem named; give a number, a range such as 1-8, a name, a category or `all`")
        return list(chosen.values())

    def categories(self) -> list[str]:
        return list(dict.fromkeys(p.category for p in self.problems()))

    def _select_one(self, part: str) -> list[Problem]:
        if part == "all":
            return self.problems()
        if span := re.fullmatch(r"(\d+)-(\d+)", part):
            return self._range(int(span[1]), int(span[2]))
        if _key(part) in self._names:
            return [self.load(part)]
        return self.problems(category=part) or [self.load(part)]

    def _range(self, first: int, last: int) -> list[Problem]:
        inside = [path for stem, path in self._files.items() if first <= _number(stem) <= last]
        if not inside:
            numbers = [_number(stem) for stem in self._files]
            raise UsageError(f"no problem in {first}-{last}; there are {min(numbers)} to {max(numbers)} (`pkb list`)")
        return [load_file(path) for path in inside]

    @cached_property
    def _files(self) -> dict[str, Path]:
        found = {path.stem: path for path in self.folder.rglob("*.py") if _PROBLEM_FILE.fullmatch(path.name)}
        return dict(sorted(found.items(), key=lambda item: _number(item[0])))

    @cached_property
    def _names(self) -> dict[str, str]:
        """Every spelling of a problem, and the stem it stands for."""
        spellings: dict[str, str] = {}
        for stem in self._files:
            number, _, name = stem.partition("_")
            spellings |= {stem.lower(): stem, number: stem, name.lower(): stem}
        return spellings

    def _hint(self, key: str) -> str:
        known = list(self._names) + [_plain(category) for category in self.categories()]
        near = difflib.get_close_matches(_key(key), known, n=3, cutoff=0.4)
        return f"did you mean {' or '.join(near)}?" if near else "`pkb list` shows them all"


@cache
def load_file(path: Path) -> Problem:
    """The problem that a file declares."""
    spec = importlib.util.spec_from_file_location(f"pkb_problem_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(getattr(module, "PROBLEM", None), Problem):
        raise UsageError(f"{path} declares no PROBLEM; docs/adding-a-problem.md shows what a file holds")
    return module.PROBLEM.bound_to(module, path)


def _number(stem: str) -> int:
    return int(stem.split("_")[0])


def _key(text: str) -> str:
    text = text.strip().removesuffix(".py")
    return str(int(text)) if text.isdigit() else text.lower()


def _plain(category: str) -> str:
    return re.sub(r"[\s_-]+", "_", category.strip().lower())


PARALLEL = Suite(Path(__file__).parent / "suites" / "parallel")
problems, load, select, categories = PARALLEL.problems, PARALLEL.load, PARALLEL.select, PARALLEL.categories
