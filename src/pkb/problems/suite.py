"""Find problems by number, name, category or range. A new problem needs only its file."""

import difflib
import importlib.util
import re
import sys
from collections import defaultdict
from collections.abc import Collection
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pkb.base.foreign_files import SOURCE_BYTES, describe_error, read_named_file
from pkb.base.printable import clean_line
from pkb.errors import UsageError
from pkb.problems.declaration import check_fields, check_module, describe_raised, is_ctrl_c, read_declaration
from pkb.problems.kernelbench import find_level, make_published_problem
from pkb.problems.kernelbench_files import read_model, unpack_table
from pkb.problems.problem import Problem
from pkb.problems.published import REFERENCES, find_published_root, is_published_root, load_published_problem

_PROBLEM_FILE = re.compile(r"\d{1,9}_[\w-]+\.py")
_SUITES = Path(__file__).parents[1] / "suites"
_RANGE = re.compile(r"(?:l?(\d{1,9})/)?(\d{1,9})-(\d{1,9})")
_NUMBER = re.compile(r"(?:l?(\d{1,9})/)?\d{1,18}")
_LEVELLED = re.compile(r"l\d+[/_]")
_EXTRAS = {"transformers": "kernelbench", "einops": "kernelbench"}
"""Modules that some problems need, and the extra that installs each."""


class Suite:
    """The problems in a folder and the folders below it: files named <number>_<name>.py.

    In folders level1, level2, ..., numbers begin again in each folder, and a problem is called L1/19.
    """

    def __init__(self, folder: Path | str):
        self.folder = Path(folder).resolve()
        if is_published_root(self.folder):
            # A checkout has candidates too, whose files have the problems' numbers.
            self.folder /= REFERENCES
        if not self._files:
            raise UsageError(f"no problem in {folder}; a suite holds files named <number>_<name>.py")

    def __repr__(self) -> str:
        return f"<Suite {clean_line(self.folder.name)}: {len(self._files)} problems, {self._extent()}>"

    def problems(self, category: str | None = None) -> list[Problem]:
        """Load all problems in order of their number, or those of one category."""
        return [_load_whole(path) for path in self._in(category)]

    def read_problems(self, category: str | None = None) -> list[Problem]:
        """Return the same problems to be listed, not posed: neither torch nor what models need is imported."""
        return [read_file(path) for path in self._in(category)]

    def load(self, key: str | int) -> Problem:
        """Load one problem, by number (13, L1/19), stem (13_gemm_allreduce) or name (gemm_allreduce)."""
        return _load_whole(self._find(key))

    def read_problem(self, key: str | int) -> Problem:
        """Return the same problem to be shown, not posed."""
        return read_file(self._find(key))

    def _find(self, key: str | int) -> Path:
        found = self._names.get(_normalize_key(str(key)), [])
        if len(found) > 1:
            raise UsageError(f"{key!r} may be any of {', '.join(map(_shorten, found))}; say which")
        if not found:
            raise UsageError(f"no problem or category {key!r}; {self._hint(str(key))}")
        return self._files[found[0]]

    def select(self, text: str) -> list[Problem]:
        """Load the problems that a text names: `all`, `1-8,13`, `L1/1-20`, a name, a category, or several of these."""
        chosen: dict[str, Problem] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            chosen |= {p.stem: p for p in self._select_one(part)}
        if not chosen:
            raise UsageError("no problem named; give a number, a range such as 1-8, a name, a category or `all`")
        return list(chosen.values())

    @property
    def stems(self) -> Collection[str]:
        """The names of all problems, with their numbers."""
        return self._files.keys()

    def categories(self) -> list[str]:
        return list(dict.fromkeys(p.category for p in self.read_problems()))

    def _in(self, category: str | None) -> list[Path]:
        if category is None:
            return [*self._files.values()]
        known = ((path, read_file(path)) for path in self._files.values())
        return [
            path for path, problem in known if _normalize_category(problem.category) == _normalize_category(category)
        ]

    def _select_one(self, part: str) -> list[Problem]:
        if part == "all":
            return self.problems()
        if span := _RANGE.fullmatch(part.lower()):
            return self._range(part, int(span[1] or 0), range(int(span[2]), int(span[3]) + 1))
        if _normalize_key(part) in self._names:
            return [self.load(part)]
        return self.problems(category=part) or [self.load(part)]

    def _range(self, text: str, level: int, numbers: range) -> list[Problem]:
        inside = [path for path in self._files.values() if find_level(path) == level and _read_number(path) in numbers]
        if not inside:
            raise UsageError(f"no problem in {text}; {self._hint_at_suite(text) or self._extent()}")
        return [_load_whole(path) for path in inside]

    @cached_property
    def _files(self) -> dict[str, Path]:
        """The files in order, by stem."""
        found = [path for path in self.folder.rglob("*.py") if _PROBLEM_FILE.fullmatch(path.name)]
        # A checkout of KernelBench has numbered files outside its levels too.
        chosen = [path for path in found if find_level(path)] or found
        files: dict[str, Path] = {}
        for path in sorted(chosen, key=lambda path: (find_level(path), _read_number(path), path)):
            if (earlier := files.setdefault(_make_stem(path), path)) != path:
                raise UsageError(f"{earlier} and {path} have the same name; rename one of the two")
        return files

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        """The stems that each spelling may mean."""
        spellings: dict[str, list[str]] = defaultdict(list)
        for stem, path in self._files.items():
            number, _, name = path.stem.partition("_")
            level = find_level(path)
            own = {f"l{level}/{number}", f"{level}/{number}"} if level else set()
            for spelling in {stem.lower(), path.stem.lower(), number, name.lower(), *own}:
                spellings[spelling].append(stem)
        return dict(spellings)

    def _extent(self, level: int = 0) -> str:
        """Return in words which problems there are, in this level if there is such a level."""
        files = [stem for stem, path in self._files.items() if level and find_level(path) == level]
        known = [*map(_shorten, files or self._files)]
        return f"there are {known[0]} to {known[-1]} (`pkb list`)"

    def _hint_at_suite(self, key: str) -> str:
        has_levels = any(find_level(path) for path in self._files.values())
        return "" if has_levels or not _LEVELLED.match(key.lower()) else "KernelBench's need --suite kernelbench"

    def _hint(self, key: str) -> str:
        if elsewhere := self._hint_at_suite(key):
            return elsewhere
        if number := _NUMBER.fullmatch(_normalize_key(key)):
            return self._extent(int(number[1] or 0))
        known = {spelling: spelling for spelling in self._names} | {
            _normalize_category(category): category for category in self.categories()
        }
        near = difflib.get_close_matches(_normalize_key(key), known, n=3, cutoff=0.4)
        shown = dict.fromkeys(self._restore_case(known[spelling]) for spelling in near)
        return f"did you mean {' or '.join(shown)}?" if near else "`pkb list` shows them all"

    def _restore_case(self, spelling: str) -> str:
        """Return the key or name that a lower-case spelling stands for; a category as it is."""
        for stem in self._names.get(spelling, []):
            for own in (_shorten(stem), stem, self._files[stem].stem, self._files[stem].stem.partition("_")[2]):
                if own.lower() == spelling:
                    return own
        return spelling


@cache
def read_file(path: Path) -> Problem:
    """Return the problem in a file to be listed or shown, not posed; the file is run only where it must be."""
    _check_file(path)
    if find_published_root(path):
        return load_file(path)
    found = read_model(path) or read_declaration(path)
    if found is None:
        return load_file(path)
    check_fields(found, path)
    return found


@cache
def load_file(path: Path) -> Problem:
    """Load a file, and return the problem that it declares or, in the published form, is."""
    _check_file(path)
    try:
        return load_published_problem(path) if find_published_root(path) else _run_file(path)
    except UsageError:
        raise
    except BaseException as error:
        # A file may also raise SystemExit.
        if is_ctrl_c(error):
            raise
        raise UsageError(f"{path} cannot be loaded: {describe_raised(error)}{_suggest_extra(error)}") from error


def _run_file(path: Path) -> Problem:
    spec = importlib.util.spec_from_file_location(f"pkb_problem_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    problem: Any = getattr(module, "PROBLEM", None)
    if problem is None:
        problem = make_published_problem(module)
    if not isinstance(problem, Problem):
        raise UsageError(f"{path} declares no PROBLEM; docs/adding-a-problem.md shows what a file holds")
    check_fields(problem, path)
    return problem.bind(module, path)


def _load_whole(path: Path) -> Problem:
    """Load a file whose problem is to be posed. A sealed file, as a candidate's rank loads it, lacks parts of it."""
    problem = load_file(path)
    check_module(problem, path)
    return problem


@cache
def find_suite(name: str) -> Suite:
    """Return a shipped suite, a folder of problems, or a table of published tasks (.parquet)."""
    if (_SUITES / name).is_dir() and re.fullmatch(r"\w+", name):
        return Suite(_SUITES / name)
    return Suite(unpack_table(Path(name)) if name.endswith(".parquet") else name)


def list_shared_modules() -> list[str]:
    """Return the modules that files of the shipped suites import from one another's folder `_shared`."""
    files = sorted(_SUITES.glob("*/_shared/*.py"))
    return [".".join(("pkb", *file.relative_to(_SUITES.parent).with_suffix("").parts)) for file in files]


def name_suite(problem: Problem) -> str:
    """Return the name under which `find_suite` finds the suite of a problem."""
    folder = problem.path.parent.parent if find_level(problem.path) else problem.path.parent
    return folder.relative_to(_SUITES).parts[0] if folder.is_relative_to(_SUITES) else str(folder)


def label_suite(problem: Problem) -> str:
    """Return the name of a problem's suite as records have it: `kernelbench` for every copy of its tasks."""
    return "kernelbench" if find_level(problem.path) else Path(name_suite(problem)).name


def load_problem(key: str | int) -> Problem:
    """Load one problem of the shipped suites; a key with a level, such as L1/19, is KernelBench's."""
    return find_shipped_suite(key).load(key)


def read_problem(key: str | int) -> Problem:
    """Return the same problem to be shown, not posed; torch is not imported."""
    return find_shipped_suite(key).read_problem(key)


def find_shipped_suite(key: str | int) -> Suite:
    """Return the shipped suite whose problems have keys of this form; it need not have this one."""
    return find_suite("kernelbench" if _LEVELLED.match(str(key).lower()) else "parallel")


def list_problems(category: str | None = None) -> list[Problem]:
    """Load the 87 multi-GPU problems in order, or those of one category."""
    return find_suite("parallel").problems(category)


def select_problems(text: str) -> list[Problem]:
    """Load the multi-GPU problems that a text such as `1-8,13` names."""
    return find_suite("parallel").select(text)


def _check_file(path: Path) -> None:
    """Raise UsageError for a pipe, a device, and everything else that cannot be the file of a problem."""
    try:
        read_named_file(path, SOURCE_BYTES)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {describe_error(error)}; correct or remove it") from error


def _suggest_extra(error: BaseException) -> str:
    extra = _EXTRAS.get(str(getattr(error, "name", "")).partition(".")[0])
    return f"; install it with `pip install -e '.[{extra}]'`" if extra else ""


def _make_stem(path: Path) -> str:
    return f"L{find_level(path)}_{path.stem}" if find_level(path) else path.stem


def _shorten(stem: str) -> str:
    parts = stem.split("_")
    return f"{parts[0]}/{parts[1]}" if parts[0].startswith("L") else parts[0]


def _read_number(path: Path) -> int:
    return int(path.stem.split("_")[0])


def _normalize_key(text: str) -> str:
    text = text.strip().removesuffix(".py")
    return str(int(text)) if re.fullmatch(r"\d{1,18}", text) else text.lower()


def _normalize_category(category: str) -> str:
    return re.sub(r"[\s_-]+", "_", category.strip().lower())
