"""docs/adding-a-report-section.md, followed to the letter: its section is in every file, and drawn on the page."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.chromium import Chromium
from helpers.made import add

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-report-section.md").read_text()
SHIPPED = Path(__file__).parents[2] / "src" / "pkb" / "report" / "sections"


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PKB_PLUGINS with the page's section."""
    folder = tmp_path_factory.mktemp("plugins")
    (source,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (folder / "report_sections").mkdir()
    (folder / "report_sections" / "backends.py").write_text(source)
    return folder


@pytest.fixture(scope="module")
def run(plugins: Path) -> Path:
    for sample, verdict in enumerate(["CORRECT", "CORRECT", "CORRECT", "WRONG", "ENVIRONMENT"]):
        add(plugins / "mine", "1_allreduce", str(sample), verdict)
    return plugins / "mine"


@pytest.fixture(scope="module")
def printed(plugins: Path, run: Path) -> str:
    """What the command of the page prints; the files are in the run's folder `report`."""
    command = [sys.executable, "-m", "pkb", "report", str(run)]
    environment = {**os.environ, "PKB_PLUGINS": str(plugins)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_section_is_in_the_terminal_and_in_every_file(printed: str, run: Path) -> None:
    assert re.search(r"^Right, by backend$", printed, re.MULTILINE)
    assert re.search(r"^triton +4 +75 %$", printed, re.MULTILINE)
    assert "| triton | 4 | 75 % |" in (run / "report" / "report.md").read_text()
    assert json.loads((run / "report" / "report.json").read_text())["backends"] == {"triton": 0.75}


def test_the_section_is_drawn_in_its_place(printed: str, run: Path, browser: Chromium) -> None:
    browser.open(run / "report" / "index.html")
    browser.until("document.documentElement.dataset.ready")
    links = browser.run("[...document.querySelectorAll('#contents a')].map((one) => one.hash)")
    assert links[-3:] == ["#backends", "#failures", "#samples"]
    assert "75 %" in browser.run("document.querySelector('#backends td:last-child').textContent")
    parts = "[...document.querySelectorAll('#backends .stack span')].map((part) => part.title)"
    assert browser.run(parts) == ["right: 3", "wrong: 1"]
    colours = "[...document.querySelectorAll('#backends .stack span')].map((p) => getComputedStyle(p).backgroundColor)"
    assert len(set(browser.run(colours))) == 2
    assert browser.errors == []


def test_the_page_names_the_shipped_orders() -> None:
    orders = [
        int(found)
        for path in SHIPPED.glob("[a-z]*.py")
        for found in re.findall(r"^ORDER = (\d+)", path.read_text(), re.M)
    ]
    assert sorted(orders) == sorted([25, *range(10, 90, 10)])
