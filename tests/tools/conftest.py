from collections.abc import Iterator

import pytest

from pkb.judge.judge import Judge
from pkb.platforms import find_platform
from pkb.tools.redteam import choose_limits


@pytest.fixture(scope="module")
def impatient() -> Iterator[Judge]:
    """A judge with the red team's short deadlines."""
    with Judge("cpu", choose_limits(find_platform("cpu"))) as judge:
        yield judge
