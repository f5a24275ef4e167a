"""The page in a real browser: clicked, typed into, narrow and wide. Whatever its console complains of fails a test."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.chromium import Chromium
from helpers.made import CANDIDATE, add, make_run, page_of, timing
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.record import Evidence
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings

SOLUTIONS = Path(__file__).parents[2] / "solutions" / "triton"
ZEROS = "def solution(tensor):\n    return tensor * 0\n"
ATTACK = '</script><img src=x onerror="window.taken=1"><script>window.taken=1</script>'
PHONE, DESKTOP = (390, 844), (1280, 900)


@pytest.fixture(autouse=True)
def quiet(browser: Chromium) -> Iterator[None]:
    """Fails a test whose page complained, or asked for anything but itself."""
    browser.errors.clear()
    browser.requests.clear()
    yield
    assert browser.errors == []
    assert {request.partition("#")[0].rpartition("/")[2] for request in browser.requests} <= {"index.html"}


def opened(browser: Chromium, page: Path, size: tuple[int, int] = DESKTOP, theme: str = "light") -> Chromium:
    browser.resize(*size, phone=size == PHONE)
    browser.open(page, prefers_color_scheme=theme)
    browser.until("document.documentElement.dataset.ready")
    return browser


def text(browser: Chromium, selector: str) -> str:
    return browser.run(f"document.querySelector({json.dumps(selector)}).textContent")


def until_focused(browser: Chromium, row: str) -> None:
    browser.until(f"document.activeElement.closest('tr')?.id === '{row}'")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    problems = ["1_allreduce", "2_allgather", "13_gemm_allreduce", "16_gemm_reducescatter"]
    runs = [make_run(folder / "before", problems, seed=1), make_run(folder / "after", problems, seed=2, gain=1.5)]
    add(runs[0], "1_allreduce", "slow_one", timed=timing(0.5))
    return page_of(*runs)


def test_a_judged_kernel_is_clicked_through_to(browser: Chromium, judge: Judge, tmp_path: Path) -> None:
    setup = judge.pose("1_allreduce", ProblemSettings(nproc=2, trials=1))
    kernel = Candidate.read(SOLUTIONS / "1_allreduce_triton.py")
    judge.judge(
        setup, kernel, JudgementSettings(rigor=RIGORS["quick"]), out=tmp_path / "run" / "1_allreduce" / "kernel"
    )
    judge.judge(setup, Candidate.of(ZEROS.encode()), out=tmp_path / "run" / "1_allreduce" / "zeros")
    opened(browser, page_of(tmp_path / "run"))
    assert "do not enter the leaderboard" in text(browser, "#notices")
    assert "CPU times" in text(browser, "#speedups")

    browser.click("#row-0 th a")
    assert browser.until("document.getElementById('sample').open")
    assert "1_allreduce · kernel" in text(browser, "#sample-title")
    assert "dist.all_reduce(total)" in text(browser, "#sample [aria-label=Reference]")
    assert kernel.source.decode().strip() == text(browser, "#sample [aria-label=Candidate]").strip()
    shown = text(browser, "#sample .inside")
    for part in (
        "CORRECT",
        "Times by rank",
        "slowest of each call",
        ", CPU times as fast as the reference",
        "Environment",
        "torch",
    ):
        assert part in shown

    browser.press("j")
    browser.until("document.getElementById('sample').dataset.index === '1'")
    shown = text(browser, "#sample .inside")
    for part in ("WRONG", "Evidence", "elements differ", "return tensor * 0"):
        assert part in shown
    browser.press("Escape")
    browser.until("!document.getElementById('sample').open")
    until_focused(browser, "row-1")


def test_every_section_is_drawn(browser: Chromium, made: Path) -> None:
    opened(browser, made)
    links = browser.run("[...document.querySelectorAll('#contents a')].map((a) => a.hash)")
    assert links == [
        "#leaderboard",
        "#comparison",
        "#grid",
        "#categories",
        "#fast_categories",
        "#fast_p",
        "#failures",
        "#samples",
    ]
    charts = browser.run("[...document.querySelectorAll('.chart')].map((box) => box.querySelectorAll('svg *').length)")
    assert len(charts) == 3
    assert min(charts) > 20
    assert browser.run("document.querySelectorAll('td.heat').length") > 8
    assert "better" in text(browser, "#comparison")
    # Every coordinate is a number: a NaN would not be drawn, and nobody would miss it.
    places = "[...document.querySelectorAll('svg *')].flatMap((part) => [...part.attributes].map((one) => one.value))"
    assert not browser.run(f"{places}.some((value) => /NaN|Infinity/.test(value))")


def test_filters_narrow_table_and_charts(browser: Chromium, made: Path) -> None:
    opened(browser, made)
    every = browser.run("document.querySelectorAll('#table tbody tr').length")
    assert every == 25
    browser.press("/")
    browser.write("slow_one correct")
    assert browser.until("document.querySelectorAll('#table tbody tr').length === 1")
    assert text(browser, "#shown") == "1 of 25 samples"
    assert browser.run("document.querySelectorAll('#speedups circle').length") == 1
    browser.press("Escape")
    assert browser.until("document.querySelectorAll('#table tbody tr').length === 25")
    choose(browser, "verdict", "CORRECT")
    verdicts = browser.run("[...document.querySelectorAll('#table tbody .verdict')].map((v) => v.textContent)")
    assert 0 < len(verdicts) < every
    assert set(verdicts) == {"CORRECT"}


def test_columns_sort_both_ways(browser: Chromium, made: Path) -> None:
    opened(browser, made)
    at = browser.run("[...document.querySelectorAll('#table thead th')].findIndex((h) => h.textContent === 'speed-up')")
    values = f"[...document.querySelectorAll('#table tbody tr')].map((r) => parseFloat(r.children[{at}].textContent))"
    heading = f"#table thead th:nth-child({at + 1})"
    for order, descending in (("descending", True), ("ascending", False)):
        browser.click(f"{heading} button")
        assert browser.run(f"document.querySelector('{heading}').ariaSort") == order
        found = browser.run(f"{values}.map((v) => Number.isNaN(v) ? null : v)")
        timed = [value for value in found if value is not None]
        assert timed == sorted(timed, reverse=descending)
        assert found[: len(timed)] == timed, "what was not timed comes last"


def test_the_keyboard_is_enough(browser: Chromium, made: Path) -> None:
    opened(browser, made)
    for key, row in (("j", "row-0"), ("j", "row-1"), ("j", "row-2"), ("k", "row-1")):
        browser.press(key)
        until_focused(browser, row)
    browser.press("Enter")
    assert browser.until("document.getElementById('sample').open")
    browser.press("k")
    browser.until("document.getElementById('sample').dataset.index === '0'")
    browser.press("Escape")
    browser.until("!document.getElementById('sample').open")
    until_focused(browser, "row-0")
    browser.press("?")
    assert browser.run("document.getElementById('keys').open")


def follow(browser: Chromium, row: int) -> None:
    """Go to the address of the sample in this row of the table."""
    browser.run(f"location.hash = document.querySelector('#row-{row} th a').hash")
    browser.until(f"document.getElementById('sample').dataset.index === '{row}'")


def test_an_address_leads_to_a_sample(browser: Chromium, made: Path) -> None:
    opened(browser, made)
    follow(browser, 3)
    assert browser.until("document.getElementById('sample').open")
    browser.run("history.back()")
    assert browser.until("!document.getElementById('sample').open")
    browser.run("location.hash = 'sample=nobody/1_allreduce/1'")
    assert browser.run("document.getElementById('sample').open") is False


def test_the_address_of_a_sample_does_not_depend_on_the_report(browser: Chromium, tmp_path: Path) -> None:
    run = make_run(tmp_path / "a run & more", ["1_allreduce", "2_allgather"], samples=1)
    opened(browser, page_of(run))
    address = browser.run("document.querySelector('#row-1 th a').hash")
    assert "index" not in address
    add(run, "1_allreduce", "0_comes_before", timed=timing(1.0))
    make_run(tmp_path / "other", ["1_allreduce"], seed=5)
    opened(browser, page_of(tmp_path / "other", run))
    browser.run(f"location.hash = {json.dumps(address)}")
    assert browser.until("document.getElementById('sample').open")
    assert "2_allgather · 1" in text(browser, "#sample-title")
    assert "run a run & more" in text(browser, "#sample .facts")


def choose(browser: Chromium, name: str, value: str) -> None:
    browser.run(
        f"""{{ const choice = document.querySelector("[data-choice={name}]");
              choice.selectedIndex = [...choice.options].findIndex((option) => option.text === {json.dumps(value)});
              choice.dispatchEvent(new Event("change")); }}"""
    )


def test_filters_and_sorting_are_in_the_address(browser: Chromium, made: Path) -> None:
    opened(browser, made)
    choose(browser, "verdict", "CORRECT")
    choose(browser, "run", "after")
    browser.press("/")
    browser.write("allreduce")
    browser.click("#table thead th:nth-child(5) button")
    rows = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.id)"
    chosen, address = browser.run(rows), browser.run("location.hash")
    assert 0 < len(chosen) < 10
    opened(browser, made)
    assert len(browser.run(rows)) == 25
    browser.run(f"location.hash = {json.dumps(address)}")
    browser.until(f"document.querySelectorAll('#table tbody tr').length === {len(chosen)}")
    assert browser.run(rows) == chosen
    assert browser.run("document.getElementById('filter').value") == "allreduce"
    assert browser.run("document.querySelector('[data-choice=run]').selectedOptions[0].text") == "after"
    assert browser.run("document.querySelector('#table thead th:nth-child(5)').ariaSort") == "descending"
    # A sample opens on top of the view, and leaves it as it was.
    browser.click("#table tbody th a")
    assert browser.until("document.getElementById('sample').open")
    assert "verdict=CORRECT" in browser.run("location.hash")
    browser.press("Escape")
    browser.until("!document.getElementById('sample').open")
    assert browser.run("location.hash") == address
    assert browser.run(rows) == chosen
    # Hostile or outdated values choose nothing, and break nothing.
    browser.run("location.hash = 'verdict=%3Cb%3E&sort=__proto__&order=x&words='")
    browser.until("document.querySelectorAll('#table tbody tr').length === 0")


def test_what_is_shown_can_be_copied_and_saved(browser: Chromium, made: Path) -> None:
    opened(browser, made)
    browser.run(
        """window.got = [];
           Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => got.push(text) } });
           URL.createObjectURL = (blob) => { blob.text().then((text) => got.push(text)); return "#"; };
           HTMLAnchorElement.prototype.click = () => {};"""
    )
    for selector in ("#leaderboard .tools button", "#tools button", "#leaderboard .tools button:last-child"):
        browser.click(selector)
    browser.until("got.length === 3")
    table, address, values = browser.run("got")
    assert table.splitlines()[0].split("\t")[:2] == ["run", "backend"]
    assert address == made.resolve().as_uri()
    assert values.splitlines()[0].startswith("run,backend,problems")
    browser.click("#tools button:last-child")
    browser.until("got.length === 4")
    lines = browser.run("got[3]").splitlines()
    assert len(lines) == 26
    assert lines[0].startswith("run,model,backend,suite,problem")
    browser.click("#row-1 th a")
    browser.until("document.getElementById('sample').open")
    for number, selector in enumerate(
        ("header .small", "header .small ~ .small", ".sources > div:last-child .small"), 5
    ):
        browser.click(f"#sample {selector}")
        browser.until(f"got.length === {number}")
    link, record, source = browser.run("got.slice(4)")
    assert link == made.resolve().as_uri() + browser.run("document.querySelector('#row-1 th a').hash")
    assert json.loads(record)["source"] == source == CANDIDATE


def test_no_column_is_cut_and_no_name_broken_within_a_word(browser: Chromium, tmp_path: Path) -> None:
    problems = ["1_allreduce", "13_gemm_allreduce", "16_gemm_reducescatter"]
    runs = [make_run(tmp_path / name, problems, samples=6) for name in ("a_model_with_a_name", "another-model-1.5")]
    for problem in problems:
        add(tmp_path / "kernels_on_a_cpu", problem, f"{problem}_triton_persistent", timed=timing(0.004), platform="cpu")
    page = page_of(*runs, tmp_path / "kernels_on_a_cpu")
    for width in (1280, 1400):
        opened(browser, page, (width, 1000))
        boxes = "[...document.querySelectorAll('.box')].filter((box) => box.clientWidth)"
        assert browser.run(f"{boxes}.length") > 4
        assert browser.run(f"{boxes}.filter((box) => box.scrollWidth > box.clientWidth).length") == 0
        broken = browser.run(
            """[...document.querySelectorAll("td, tbody th")].flatMap((cell) => {
                 const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
                 const found = [];
                 while (walker.nextNode()) {
                   for (const word of walker.currentNode.data.matchAll(/[A-Za-z0-9]+/g)) {
                     const range = document.createRange();
                     range.setStart(walker.currentNode, word.index);
                     range.setEnd(walker.currentNode, word.index + word[0].length);
                     const lines = new Set([...range.getClientRects()].map((one) => Math.round(one.y)));
                     if (lines.size > 1) found.push(word[0]);
                   }
                 }
                 return found;
               })"""
        )
        assert broken == []


def test_the_grid_leads_to_the_best_sample(browser: Chromium, made: Path) -> None:
    opened(browser, made)
    names = browser.run("[...document.querySelectorAll('#grid tbody th')].map((cell) => cell.textContent)")
    assert names == ["1_allreduce", "2_allgather", "13_gemm_allreduce", "16_gemm_reducescatter"]
    browser.click("#grid tbody tr:nth-child(2) td a")
    assert browser.until("document.getElementById('sample').open")
    assert "2_allgather" in text(browser, "#sample-title")


def test_light_and_dark(browser: Chromium, made: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = opened(browser, made, theme="light").run(ground)
    dark = opened(browser, made, theme="dark").run(ground)
    assert light != dark
    for _ in ("auto", "light"):
        browser.press("t")
    assert "dark" in text(browser, "#theme-button")
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    assert browser.run(ground) == dark, "what a person chose outlasts the system's wish"
    browser.press("t")
    assert browser.run(ground) == light


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_nothing_is_wider_than_the_screen(browser: Chromium, made: Path, size: tuple[int, int]) -> None:
    opened(browser, made, size)
    assert browser.run("document.documentElement.scrollWidth") <= size[0]
    browser.click("#row-0 th a")
    browser.until("document.getElementById('sample').open")
    assert browser.run("document.getElementById('sample').scrollWidth") <= size[0]
    sides = browser.run(
        "[...document.querySelectorAll('.sources > div')].map((side) => side.getBoundingClientRect().x)"
    )
    assert (sides[0] == sides[1]) == (size == PHONE), "beside each other where there is room"


def test_hostile_texts_are_shown_and_never_run(browser: Chromium, tmp_path: Path) -> None:
    source = f"# {ATTACK}\n{CANDIDATE}"
    run = tmp_path / ATTACK.replace("/", "")
    details = {ATTACK: {"deep": f"{ATTACK}\n{ATTACK}"}}
    evidence = Evidence(ATTACK, traceback=[ATTACK], details=details)
    folder = add(run, "1_allreduce", "<b>x", "CRASH", source=source, reason=ATTACK, evidence=evidence, category=ATTACK)
    (folder / "logs" / "rank_1.txt").write_text(ATTACK)
    add(run, "1_allreduce", "__proto__", timed=timing(2.0), source="'" * 3 + ATTACK)
    shutil.copytree(folder, run / "99_constructor" / "x")
    opened(browser, page_of(run))
    for index in range(3):
        follow(browser, index)
    assert "not in the suite" in text(browser, "#sample .sources")
    follow(browser, 0)
    for selector in ("[aria-label=Candidate]", ".reason", "dl.tree", "pre.plain"):
        assert ATTACK in text(browser, f"#sample {selector}")
    assert browser.run("window.taken") is None
    assert browser.run("document.querySelectorAll('img, iframe, object').length") == 0


def test_marked_lines_are_those_that_the_evidence_names(browser: Chromium, tmp_path: Path) -> None:
    add(tmp_path / "run", "1_allreduce", "1", "HANG")
    opened(browser, page_of(tmp_path / "run"))
    follow(browser, 0)
    browser.until("document.getElementById('sample').open")
    marked = browser.run("[...document.querySelectorAll('.marked')].map((line) => line.textContent.trim())")
    assert marked == ["dist.all_reduce(total)"]


def test_each_turn_of_a_refined_sample_can_be_unfolded(browser: Chromium, tmp_path: Path) -> None:
    sample = add(tmp_path / "run", "1_allreduce", "1", timed=timing(1.5))
    for turn, verdict, times, source in (("1", "WRONG", None, ZEROS), ("2", "CORRECT", timing(1.5), CANDIDATE)):
        judged = add(tmp_path / "turns", "1_allreduce", turn, verdict, times, source)
        shutil.copytree(judged, sample / "turns" / turn)
    opened(browser, page_of(tmp_path / "run"))
    browser.click("#row-0 th a")
    browser.until("document.getElementById('sample').open")
    folds = "[...document.querySelectorAll('#sample details')].filter((one) => one.textContent.startsWith('Turn'))"
    assert browser.run(f"{folds}.map((one) => one.firstChild.textContent)") == [
        "Turn 1: WRONG",
        "Turn 2: CORRECT, 1.50x",
    ]
    assert "3 of 128 elements differ" in browser.run(f"{folds}[0].textContent")
    assert ZEROS.strip() == text(browser, "#sample [aria-label='Candidate of turn 1']").strip()
