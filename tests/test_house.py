"""The house stays easy to find one's way in: arrows, folders, names and lengths, as tools/house.py measures them."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

MOST_LINES = 60


@pytest.fixture(scope="module")
def house() -> ModuleType:
    path = Path(__file__).parents[1] / "tools" / "house.py"
    spec = importlib.util.spec_from_file_location("house", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_import_points_against_the_layers(house: ModuleType) -> None:
    assert house.list_wrong_arrows() == []


def test_no_folder_is_crowded(house: ModuleType) -> None:
    """`cli` has one file for each verb."""
    crowded = {folder: count for folder, count in house.count_modules().items() if count > house.MOST_MODULES}
    assert crowded.keys() <= {"pkb/cli"}, crowded


def test_functions_are_not_named_by_participles(house: ModuleType) -> None:
    participles = house.list_participles()
    assert len(participles) < house.MOST_PARTICIPLES * len(list(house.list_functions())), participles


def test_no_two_classes_have_the_same_name(house: ModuleType) -> None:
    assert house.list_repeated_classes() == []


def test_no_function_is_long(house: ModuleType) -> None:
    """The signature does not count: that of a verb is the list of its options."""
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path, node in house.list_functions()
        if node.end_lineno - node.body[0].lineno >= MOST_LINES
    ]
    assert long == []


def test_an_arrow_against_the_layers_is_seen(
    house: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"errors.py": "import pkb.judge.judge", "rank/call.py": "from pkb.judge import judge"}.items():
        file = tmp_path / "pkb" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"def late():\n    {text}\n")
    (tmp_path / "pkb" / "judge").mkdir()
    (tmp_path / "pkb" / "judge" / "judge.py").write_text("from pkb import errors\n")
    monkeypatch.setattr(house, "SOURCE", tmp_path)
    assert house.list_wrong_arrows() == ["pkb.errors -> pkb.judge.judge", "pkb.rank.call -> pkb.judge.judge"]
