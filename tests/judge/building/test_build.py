"""Candidates that compile: once, ahead, without ranks waiting; and what a candidate is told when it does not work."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from pkb.candidate import Candidate
from pkb.judge.building import cache
from pkb.judge.judge import Judge
from pkb.protocol.extension_files import may_compile
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings

BUILD_S = 3.0

MODULE = r"""
import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load_inline

SOURCE = '''
#include <cstdint>
#include <pybind11/pybind11.h>
void add(std::uintptr_t into, std::uintptr_t from, long count) {
    float *x = reinterpret_cast<float *>(into), *y = reinterpret_cast<float *>(from);
    for (long i = 0; i < count; ++i) x[i] += y[i];
}
'''
adding = load_inline(
    "adding", SOURCE, functions=["add"], with_pytorch_error_handling=False, no_implicit_headers=True,
    build_directory="/nowhere", verbose=True,
)

def solution(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    for part in parts[1:]:
        adding.add(parts[0].data_ptr(), part.data_ptr(), part.numel())
    return parts[0]
"""

# Without any header, compiling takes tenths of a second.
PLAIN = """
import ctypes, os
import torch.distributed as dist
from torch.utils import cpp_extension

SOURCE = 'extern "C" int twice(int x) { return 2 * x; }'

def compiled(name, source=SOURCE):
    path = cpp_extension.load_inline(name, source, no_implicit_headers=True, is_python_module=False)
    assert ctypes.CDLL(path).twice(21) == 42
"""
RIGHT = """
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""
IN_SOLUTION = PLAIN + "def solution(tensor):\n    compiled('in_solution')" + RIGHT
ON_DEMAND = PLAIN + "def ready():\n    compiled('on_demand')\n\ndef solution(tensor):\n    ready()" + RIGHT
NEEDS_PEERS = PLAIN + "compiled(f'of_{dist.get_world_size()}')\n\ndef solution(tensor):" + RIGHT
FROM_A_FILE = (
    PLAIN
    + """
with open("twice.cpp", "w") as file:
    file.write(SOURCE)
folder = os.path.abspath(".")
cpp_extension.load("from_a_file", folder + "/twice.cpp", extra_include_paths=[folder], is_python_module=False)

def solution(tensor):"""
    + RIGHT
)
UNDEFINED = (
    PLAIN
    + """
cpp_extension.load_inline("undefined", "int nowhere(); int twice() { return nowhere(); }", no_implicit_headers=True)
def solution(tensor): ...
"""
)
ENDLESS = (
    PLAIN
    + """
os.mkfifo("never.h")
compiled("endless", f'#include "{os.path.abspath("never.h")}"')
def solution(tensor): ...
"""
)


@dataclass
class Bench:
    """A judge whose C++ compiler notes every source that it compiles."""

    judge: Judge
    notes: Path

    def compilations(self) -> int:
        return self.notes.read_text().count(" -c ")

    def try_out(self, source: str, limits: Limits | None = None, out: Path | None = None) -> tuple[Record, int]:
        """The record, and how many sources were compiled for it."""
        before = self.compilations()
        setup = self.judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
        setup = replace(setup, limits=limits or setup.limits)
        record = self.judge.judge(setup, Candidate.of(source.encode()), out=out)
        return record, self.compilations() - before


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("compiler")
    notes = folder / "notes"
    notes.touch()
    wrapper = folder / "c++"
    wrapper.write_text(f'#!/bin/sh\necho "$0 $*" >> {notes}\nPATH="${{PATH#*:}}" exec c++ "$@"\n')
    wrapper.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        # Locked up, the compiler could not write its notes.
        with Judge("cpu", sandbox="off") as judge:
            yield Bench(judge, notes)


def test_a_locked_up_candidate_is_compiled_and_judged(judge: Judge) -> None:
    source = MODULE.replace('"adding", SOURCE', '"adding_in_a_cell", SOURCE').encode()
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    first, second = (judge.judge(setup, Candidate.of(source)) for _ in range(2))
    assert (first.correct, second.correct) == (True, True), first.reason
    assert ("build" in first.seconds, "build" in second.seconds) == (True, False)


def test_an_extension_is_compiled_once_and_for_all(bench: Bench) -> None:
    record, compiled = bench.try_out(MODULE)
    assert record.verdict is Verdict.CORRECT, record.reason
    assert compiled == 1
    assert record.seconds["build"] > 0
    again, compiled = bench.try_out(MODULE)
    assert again.verdict is Verdict.CORRECT
    assert compiled == 0
    assert "build" not in again.seconds


def test_once_one_candidate_compiles_ranks_find_imported_what_that_takes() -> None:
    looks = "import sys\nfound = 'setuptools.command.build_ext' in sys.modules\n"
    looks += "def solution(tensor):\n    return tensor * found\n"
    with Judge("cpu") as judge:
        setup = judge.pose("allreduce", ProblemSettings(nproc=1, trials=1))
        sources = (looks, MODULE, looks)
        found = [
            judge.judge(setup, Candidate.of(source.encode()), JudgementSettings(screen=False)).correct
            for source in sources
        ]
    assert found == [False, True, True]


@pytest.mark.parametrize("source", [ON_DEMAND, FROM_A_FILE], ids=["on_demand", "from_a_file"])
def test_what_can_be_compiled_ahead_is(bench: Bench, source: str) -> None:
    for expected in (1, 0):
        record, compiled = bench.try_out(source)
        assert record.verdict is Verdict.CORRECT, record.reason
        assert compiled == expected


@pytest.mark.parametrize("source", [IN_SOLUTION, NEEDS_PEERS], ids=["in_solution", "needs_peers"])
def test_what_cannot_is_compiled_by_one_rank(bench: Bench, source: str) -> None:
    for _ in range(2):
        record, compiled = bench.try_out(source)
        assert record.verdict is Verdict.CORRECT, record.reason
        assert compiled == 1


def test_a_compile_error_names_the_line(bench: Bench, tmp_path: Path) -> None:
    record, _ = bench.try_out(MODULE.replace("+= y[i]", "+= z[i]"), out=tmp_path)
    assert record.verdict is Verdict.BUILD_FAILED
    assert "extension 'adding' does not compile: main.cpp:6:" in record.reason
    assert record.evidence.errors[0].startswith("main.cpp:")
    assert "x[i] += z[i];" in record.evidence.errors[1]
    assert "reference" not in record.seconds
    assert Record.from_json((tmp_path / "record.json").read_text()) == record


def test_a_compile_error_in_a_call_is_one_too(bench: Bench) -> None:
    record, _ = bench.try_out(IN_SOLUTION.replace("2 * x", "2 * y"))
    assert record.verdict is Verdict.BUILD_FAILED
    assert "main.cpp:1:" in record.reason


def test_a_library_that_cannot_be_loaded_is_not_compiled_again(bench: Bench) -> None:
    record, compiled = bench.try_out(UNDEFINED)
    assert record.verdict is Verdict.BUILD_FAILED
    assert "undefined symbol" in record.reason
    assert compiled == 1


def test_a_build_that_never_ends_is_ended(bench: Bench) -> None:
    record, _ = bench.try_out(ENDLESS, Limits(build_s=BUILD_S))
    assert record.verdict is Verdict.BUILD_FAILED
    assert f"not done after {BUILD_S:g} s" in record.reason
    assert "raise --build-timeout" in record.reason
    assert psutil.Process(bench.judge.nursery.process.pid).children(recursive=True) == []


def test_what_is_missing_is_not_the_candidates_fault(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    source = MODULE + "# another\n"
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        record, _ = bench.try_out(source)
        assert (record.verdict, record.evidence.check) == (Verdict.ENVIRONMENT, "toolchain")
    monkeypatch.setenv("PKB_CACHE", "/dev/null/cache")
    record, _ = bench.try_out(IN_SOLUTION)
    assert (record.verdict, record.evidence.check) == (Verdict.ENVIRONMENT, "cache")
    assert "set PKB_CACHE" in record.reason


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch.utils.cpp_extension as cpp", True),
        ("def solution(x):\n    from torch.utils import cpp_extension", True),
        ("import importlib\nimportlib.import_module('torch.utils.cpp_extension')", True),
        ("# from torch.utils.cpp_extension import load_inline\nimport torch", False),
        ("'''Needs no torch.utils.cpp_extension.'''", False),
        ("def broken(:", False),
        ("\0", False),
        ("x = " + "(" * 500_000, False),
    ],
)
def test_only_sources_that_may_compile_are_built(source: str, expected: bool) -> None:
    assert may_compile(source.encode()) is expected


def test_the_cache_is_where_people_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKB_CACHE", "/somewhere")
    assert cache.find_root() == Path("/somewhere/build")
    monkeypatch.delenv("PKB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache.find_root() == Path("/elsewhere/pkb/build")


def _library(folder: Path, content: bytes) -> Path:
    folder.mkdir()
    library = folder / "library.so"
    library.write_bytes(content)
    return library


def test_a_kept_entry_stays(tmp_path: Path) -> None:
    entry = tmp_path / "cache" / "entry"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        cache.store(entry, [_library(tmp_path / name / "key", name.encode())])
    assert (entry / "key" / "library.so").read_bytes() == b"first"
    assert list(entry.parent.iterdir()) == [entry]


def test_the_longest_unused_entries_make_room(tmp_path: Path) -> None:
    for age, name in enumerate(["new", "middle", "old"]):
        cache.store(tmp_path / "cache" / name, [_library(tmp_path / name, bytes(1000))])
        os.utime(tmp_path / "cache" / name, (1e9 - age, 1e9 - age))
    assert cache.touch(tmp_path / "cache" / "old")
    cache.trim(tmp_path / "cache", cap=2500)
    assert {entry.name for entry in (tmp_path / "cache").iterdir()} == {"new", "old"}
    assert not cache.touch(tmp_path / "cache" / "middle")
