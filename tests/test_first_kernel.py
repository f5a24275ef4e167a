"""examples/first_kernel.ipynb runs, and comes to what its text says."""

import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_kernel.ipynb"


def find_text(output: dict[str, object]) -> str:
    data = output.get("data", {})
    assert isinstance(data, dict)
    return str(data.get("text/plain", ""))


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what each cell of code shows, in order."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    nbclient.NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(folder)}}).execute()
    assert (folder / "runs" / "first_kernel" / "1_allreduce" / "second" / "record.json").is_file()
    return ["".join(map(find_text, cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"]


def test_the_notebook_goes_from_wrong_to_right(cells: list[str]) -> None:
    problem, first, evidence, second, frame, counts = cells
    assert problem.startswith("<Problem 1_allreduce")
    assert first.startswith("<Record 1_allreduce candidate: WRONG; ")
    assert "Verdict.WRONG" in evidence
    assert re.match(r"<Record 1_allreduce candidate: CORRECT (FASTER|TIE|SLOWER) .*, CPU times; ", second)
    assert re.search(r"first +WRONG.*second +CORRECT", frame, re.DOTALL)
    assert re.search(r"CORRECT +1\nWRONG +1", counts)


def test_the_notebook_shows_what_it_showed_when_it_ran(cells: list[str]) -> None:
    """What a reader sees without running it came from the same cells."""
    nbformat = pytest.importorskip("nbformat")
    kept = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    shown = ["".join(map(find_text, cell.outputs)) for cell in kept]
    verdicts = re.compile(r"WRONG|CORRECT|Problem \w+|CPU times")
    assert [verdicts.findall(text) for text in shown] == [verdicts.findall(text) for text in cells]
