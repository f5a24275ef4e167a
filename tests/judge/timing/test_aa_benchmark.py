"""benchmarks/aa.py times pairs of identical code in several visits, and keeps all raw times."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).parents[3] / "benchmarks" / "aa.py"
WORDS = ("--problems", "all", "--size", "tiny", "--rigor", "quick", "--platform", "cpu")


@pytest.fixture(scope="module")
def aa() -> ModuleType:
    spec = importlib.util.spec_from_file_location("aa", PROGRAM)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["aa"] = module
    spec.loader.exec_module(module)
    return module


def run_aa(aa: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["aa.py", *WORDS, *words])
    with pytest.raises(SystemExit) as ended:
        aa.main()
    return int(ended.value.code or 0)


@pytest.mark.clock
def test_a_visit_goes_on_where_the_last_one_stopped(
    aa: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "aa.jsonl"
    both = ("--json", str(file), "--skip-done", str(file))
    run_aa(aa, monkeypatch, "--worlds", "1", "--problems", "8", *both)
    (pair,) = aa.read_pairs(file)
    assert capsys.readouterr().out.startswith("8_alltoall                               W=1")
    assert len(pair.record.timing.blocks_us["reference"]) >= 8
    with file.open("a") as torn:
        torn.write('{"wall_s": 1.0, "rec\n')
    run_aa(aa, monkeypatch, "--worlds", "1", *both, "--minutes", "0")
    said = capsys.readouterr()
    assert "1 pairs of identical code (1 of them in earlier visits)" in said.out
    assert "; 86 left" in said.out
    assert "skipped a line" in said.err
    assert aa.read_pairs(file) == [pair]
