"""What tests of generation share: a provider of our own, whose key is in the environment, and one engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.running import Run
from helpers.server import KEY, Provider
from pkb.engine.local import LocalEngine
from pkb.generate.pipeline import Judging
from pkb.settings import JudgementSettings, ProblemSettings


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    running = Provider()
    yield running
    running.close()


@pytest.fixture
def run(provider: Provider, tmp_path: Path) -> Run:
    return Run(provider, tmp_path)


@pytest.fixture(scope="session")
def engine() -> Iterator[LocalEngine]:
    with LocalEngine("cpu") as resident:
        yield resident


@pytest.fixture
def judging(engine: LocalEngine) -> Judging:
    """Judge on two ranks, once, without timing."""
    return Judging(engine, ProblemSettings(2, trials=1), JudgementSettings())
