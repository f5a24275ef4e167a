"""What is shown and what is hidden: of our own files three libraries, wherever pkb and its folders lie."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from helpers.confined import Locked, judge_candidate
from helpers.own_files import LIBRARIES, list_found, make_search
from pkb.base import paths
from pkb.candidate import Candidate
from pkb.sandbox import visible_paths as view
from pkb.sandbox.visible_paths import Ours, PathRule
from pkb.settings import JudgementSettings, ProblemSettings

PACKAGE = paths.find_package()
_LIST_MODULES = """
import sys
import pkb.nursery.main, pkb.rank.builder
from pkb.backends import load_backends
from pkb.checks import list_checks
from pkb.platforms import load_platforms
from pkb.problems.suite import list_shared_modules
from pkb.nursery.forking import preload_modules
load_backends(), list_checks(), load_platforms(), preload_modules(list_shared_modules())
print(*(m.__file__ for n, m in sys.modules.items() if n.startswith("pkb") and getattr(m, "__file__", None)))
"""


def is_shown(path: Path | str, rules: list[PathRule]) -> bool:
    inner = [rule for rule in rules if Path(path).is_relative_to(rule.path)]
    return bool(inner) and inner[-1].is_shown


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
def test_a_candidate_reads_three_libraries_of_ours_and_nothing_else(locked: Locked, level: str, tmp_path: Path) -> None:
    (tmp_path / "baseline.json").write_text("a stored baseline")
    judge = locked.at(level)
    record = judge_candidate(judge, Candidate.of(make_search(str(tmp_path), str(paths.find_cache_folder()))))
    assert list_found(record.evidence.message) == LIBRARIES


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_a_run_in_a_system_folder_is_hidden(locked: Locked, level: str) -> None:
    if not os.access("/opt", os.W_OK):
        pytest.skip("this user cannot write to a folder that is shown")
    judge = locked.at(level)
    with tempfile.TemporaryDirectory(dir="/opt") as run:
        (Path(run) / "other").mkdir()
        (Path(run) / "other" / "record.json").write_text("the record of another candidate")
        source = Candidate.of(make_search(run))
        assert ".." in list_found(judge_candidate(judge, source).evidence.message)
        posed = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
        record = judge.judge(posed, source, JudgementSettings(screen=False), out=Path(run) / "mine")
        assert list_found(record.evidence.message) == LIBRARIES
        assert (Path(run) / "mine" / "record.json").is_file()


def test_without_a_sandbox_the_same_candidate_finds_everything(locked: Locked) -> None:
    record = judge_candidate(locked.at("off"), Candidate.of(make_search()))
    assert {"agent", ".."} <= list_found(record.evidence.message)


def test_what_a_nursery_imports_is_what_a_program_of_a_rank_sees() -> None:
    listed = subprocess.run([sys.executable, "-c", _LIST_MODULES], capture_output=True, text=True, check=True).stdout
    rules = view.list_rules(Ours.PROGRAM)
    assert len(listed.split()) > 40
    assert [path for path in listed.split() if not is_shown(path, rules)] == []
    assert not any(is_shown(PACKAGE / part, rules) for part in ("judge", "screen", "generate", "suites/parallel/other"))


def test_a_checkout_in_a_system_folder_is_hidden_but_for_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, environment = tmp_path / "opt" / "ours" / "src" / "pkb", tmp_path / "opt" / "ours" / ".venv"
    for folder in (package / "cuda_lib", package / "judge", environment, tmp_path / "opt" / "tools"):
        folder.mkdir(parents=True)
    (package / "triton_lib.py").touch()
    (tmp_path / "alias").symlink_to(tmp_path / "opt")
    monkeypatch.setattr(view, "_list_system_paths", lambda: frozenset({str(tmp_path / "opt"), str(environment)}))
    monkeypatch.setattr(view, "_list_hidden_paths", lambda: (str(tmp_path / "alias" / "ours"), str(package)))
    monkeypatch.setattr(view, "find_package", lambda: package)
    rules = view.list_rules(hidden=[str(tmp_path / "opt" / "tools" / "runs")])
    shown = {p.name: is_shown(p, rules) for p in (package, package / "judge", package / "triton_lib.py", environment)}
    assert shown == {"pkb": False, "judge": False, "triton_lib.py": True, ".venv": True}
    assert is_shown(tmp_path / "opt" / "tools", rules)
    whole, listed = view.list_open_paths(rules)
    assert str(tmp_path / "opt") in listed
    assert {str(tmp_path / "opt" / "tools"), str(environment), str(package / "cuda_lib")} <= {*whole}
    assert not any(Path(path).is_relative_to(tmp_path / "opt" / "ours" / "src" / "pkb" / "judge") for path in whole)
    assert str(tmp_path / "opt" / "ours") not in whole


def test_a_link_does_not_open_what_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "lib" / "ours").mkdir(parents=True)
    os.symlink("lib", tmp_path / "lib64")
    whole, listed = view.list_open_paths(
        [PathRule(str(tmp_path), True), PathRule(str(tmp_path / "lib" / "ours"), False)]
    )
    assert whole == []
    assert {*listed} == {str(tmp_path), str(tmp_path / "lib")}
