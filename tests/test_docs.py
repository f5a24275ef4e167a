"""The documentation is a site whose links lead somewhere, in pages of moderate length, with commands that exist."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from typer import Context
from typer.main import get_command

from helpers.chromium import BROWSER, Chromium
from helpers.commands import run_pkb
from pkb.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SKILL = ROOT / "skills" / "pkb-kernel" / "SKILL.md"
MOST_WORDS = 1500
OUTSIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md", "SECURITY.md")]
PAGES = sorted(DOCS.glob("*.md"))


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose settings of extensions name Python functions."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def read_navigation() -> dict[str, list[str]]:
    """Return the pages of each section of the site."""
    entries = yaml.load((ROOT / "mkdocs.yml").read_text(), _Loader)["nav"]
    return {title: list(list_pages(inner)) for entry in entries for title, inner in entry.items()}


def list_pages(inner: Any) -> Iterator[str]:
    if isinstance(inner, str):
        yield inner
    else:
        for entry in inner:
            yield from (page for deeper in entry.values() for page in list_pages(deeper))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does: a link, an anchor or a page that is missing fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_site_needs_no_other_host(site: Path) -> None:
    """Scripts, styles, fonts and pictures are files of the site; only links of the text lead elsewhere."""
    loads = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")
    for page in site.rglob("*.html"):
        assert loads.findall(page.read_text()) == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", style.read_text()), style


def test_links_on_the_site_are_named_by_titles_and_lead_to_pages_of_it(site: Path) -> None:
    page = (site / "architecture.html").read_text()
    assert '<a href="layers.html">The tree and the layers</a>' in page
    assert "judgement.py</code>" in page
    assert 'href="../' not in page


def test_the_site_works_from_files_with_its_search_and_dark_mode(site: Path) -> None:
    if BROWSER is None:
        pytest.skip("no Chromium on the PATH: install Debian's package `chromium` to test the site")
    with Chromium() as browser:
        browser.resize(1280, 800)
        browser.open(site / "guide.html", prefers_color_scheme="light")
        browser.until("document.body.dataset.mdColorScheme === 'default'")
        browser.click("label[for=__palette_1]")
        browser.until("document.body.dataset.mdColorScheme === 'slate'")
        browser.click("input.md-search__input")
        browser.write("hidden size")
        browser.press(" ")
        browser.until("document.querySelector('.md-search-result__meta').textContent.includes('matching')")
        assert browser.errors == []
        assert [asked for asked in browser.requests if asked.startswith("http")] == []


def test_every_page_is_in_the_navigation_and_in_llms_txt() -> None:
    listed = [page for pages in read_navigation().values() for page in pages]
    assert sorted(listed) == [page.name for page in PAGES]
    outline = (DOCS / "llms.txt").read_text()
    assert re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", outline, re.MULTILINE) == listed
    assert re.match(r"# .+\n\n> .+\n", outline)


def test_pages_have_at_most_1500_words_unless_they_are_printed() -> None:
    printed = {*read_navigation()["Tables"], "reference.md"}
    words = {page.name: len(page.read_text().split()) for page in PAGES if page.name not in printed}
    assert {name: count for name, count in words.items() if count > MOST_WORDS} == {}


def list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*OUTSIDE, SKILL, DOCS / "llms.txt"], ids=lambda page: page.name)
def test_links_outside_the_site_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        target, _, anchor = unquote(link).partition("#")
        if "://" in target:
            continue
        path = page.parent / target if target else page
        assert path.exists(), link
        assert not anchor or anchor in list_anchors(path), link


def list_commands(page: Path) -> Iterator[list[str]]:
    """Yield the command lines of pkb that a page shows, without comments."""
    for line in re.findall(r"^\s+(?:\$ )?(pkb (?:[^\n\\]|\\\n)*)", page.read_text(), re.MULTILINE):
        words = shlex.split(line.replace("\\\n", " "), comments=True)
        if len(words) > 1 and not {"…", "..."} & {*words}:
            yield words[1:]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", SKILL], ids=lambda page: page.name)
def test_commands_have_these_options(page: Path) -> None:
    group: Any = get_command(app)
    for verb, *words in list_commands(page):
        if not verb.startswith("-"):
            context: Context = group.commands[verb].make_context(verb, [*words], obj=[verb, *words])
            context.close()


def test_the_skill_names_every_verdict_and_has_its_header() -> None:
    from pkb.record import Verdict

    text = SKILL.read_text()
    assert re.match(r"---\nname: pkb-kernel\ndescription: .{80,1024}\n---\n", text)
    assert [verdict for verdict in Verdict if verdict not in text] == []
    assert len(list(list_commands(SKILL))) > 10
    assert [verdict for verdict in Verdict if f"| {verdict} |" not in (DOCS / "results.md").read_text()] == []


def test_the_first_kernel_is_wrong_and_then_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Follow docs/first-kernel.md to the letter, but for the command that needs GPUs."""
    text, _, on_gpus = (DOCS / "first-kernel.md").read_text().partition("## Then, on GPUs")
    assert "--rigor paper" in on_gpus
    monkeypatch.chdir(tmp_path)
    printed = []
    for source, command in re.findall(r"^```python\n(.*?)^```|^    pkb ([^\n]+)", text, re.MULTILINE | re.DOTALL):
        if source:
            (tmp_path / "kernel.py").write_text(source)
        else:
            ran = run_pkb(*shlex.split(command), PKB_EVAL_PLATFORM="cpu", PKB_DRYRUN_PLATFORM="cpu")
            printed.append((ran.returncode, ran.stdout.split(" ")[0], ran.stderr))
    shown, inspected, checked, dried, wrong, right, reported = printed
    assert [one[0] for one in (shown, inspected, checked, dried, right, reported)] == [0] * 6, printed
    assert wrong[:2] == (1, "WRONG")
    assert right[1] == "CORRECT"
    assert (tmp_path / "runs" / "first" / "1_allreduce" / "kernel" / "record.json").exists()
    assert (tmp_path / "runs" / "first" / "report" / "index.html").exists()


def test_nested_lists_are_indented_by_four_spaces() -> None:
    """With fewer, the site's Markdown shows the inner list as part of the outer one."""
    flat = [page.name for page in PAGES if re.search(r"^ {1,3}(?:[-*]|\d+\.) ", page.read_text(), re.MULTILINE)]
    assert flat == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", SKILL], ids=lambda page: page.name)
def test_commands_in_sentences_and_tables_have_these_options(page: Path) -> None:
    group: Any = get_command(app)
    for line in re.findall(r"`pkb ([a-z][^`]*)`", page.read_text()):
        verb, *words = line.split()
        known = {name for one in group.commands[verb].params for name in one.opts} | {"--help"}
        assert set(re.findall(r"--[a-z][\w-]*", " ".join(words))) <= known, line
