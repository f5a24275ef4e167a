"""docs/reference.md is what tools/reference.py writes, and has every public name."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import pkb

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference.md").read_text()


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(tool: ModuleType) -> None:
    assert tool.write_page() == PAGE, "run `python tools/reference.py`"


def test_every_public_name_is_on_the_page_and_documented(tool: ModuleType) -> None:
    assert sorted(name for names in tool.GROUPS.values() for name in names) == sorted(pkb.__all__)
    for name in pkb.__all__:
        section = PAGE.split(f"### `pkb.{name}`\n")[1].partition("\n##")[0]
        assert len(section.split()) > 5, f"{name} has no docstring"
        assert "None\n" not in section.replace("-> None\n", "")


def test_members_stand_with_their_docstrings() -> None:
    assert pkb.evaluate.__doc__
    assert pkb.evaluate.__doc__.splitlines()[0] in PAGE
    assert pkb.evaluate_async.__doc__
    assert pkb.evaluate_async.__doc__.splitlines()[0] in PAGE
    for part in ("nproc: int | None = None", "The number of ranks", "to_pandas() -> 'pandas.DataFrame'", "Judge one"):
        assert part in PAGE
