"""The Python API, as the README shows it."""

import re
import runpy
from pathlib import Path

import pkb

README = Path(__file__).parents[1] / "README.md"


def test_the_example_in_the_readme_runs(tmp_path: Path, capsys: object) -> None:
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    assert len(example.strip().splitlines()) <= 14
    script = tmp_path / "example.py"
    script.write_text(example)
    names = runpy.run_path(str(script))
    assert isinstance(names["record"], pkb.Record)
    assert names["record"].verdict == pkb.Verdict.CORRECT


def test_the_package_names_its_own() -> None:
    assert {"evaluate", "list_problems", "load_problem", "Record", "Problem", "Judge"} <= set(pkb.__all__)
    assert all(getattr(pkb, name) for name in pkb.__all__)
