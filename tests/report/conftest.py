from collections.abc import Iterator

import pytest

from helpers.chromium import BROWSER, Chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    if BROWSER is None:
        pytest.skip("no Chromium on the PATH: install Debian's package `chromium` to test the page")
    with Chromium() as one:
        yield one
