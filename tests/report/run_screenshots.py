"""The pictures in docs/images: python tests/report/run_screenshots.py RUN...

Needs Chromium, a sample that crashed, and one that is WRONG in a run named first.
"""

import sys
from pathlib import Path

from helpers.chromium import Chromium
from helpers.made import page_of

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SETTLED = "new Promise((done) => requestAnimationFrame(() => setTimeout(done, 200)))"
TO_THE_SAMPLES = "document.getElementById('samples').scrollIntoView({ behavior: 'instant' })"
TO_A_SAMPLE = """
    [...document.querySelectorAll("#table tbody tr")]
        .find((row) => %s.every((word) => row.textContent.includes(word))).querySelector("a").click()
"""


def shoot(browser: Chromium, page: Path, name: str, size: tuple[int, int], theme: str, script: str) -> None:
    browser.resize(*size, phone=size[0] < 500)
    browser.open(page, prefers_color_scheme=theme)
    browser.until("document.documentElement.dataset.ready")
    browser.run(script)
    browser.run(SETTLED)
    print(browser.screenshot(IMAGES / f"{name}.png"))


def main() -> None:
    page = page_of(*map(Path, sys.argv[1:]))
    IMAGES.mkdir(exist_ok=True)
    with Chromium() as browser:
        shoot(browser, page, "report-light", (1280, 1000), "light", "null")
        shoot(browser, page, "report-samples", (1280, 1000), "light", TO_THE_SAMPLES)
        shoot(browser, page, "report-dark", (1280, 720), "dark", TO_A_SAMPLE % ["CRASH"])
        shoot(browser, page, "report-wrong", (1280, 720), "light", TO_A_SAMPLE % ["WRONG", "first"])
        shoot(browser, page, "report-phone", (390, 844), "light", TO_THE_SAMPLES)
        assert browser.errors == []


if __name__ == "__main__":
    main()
