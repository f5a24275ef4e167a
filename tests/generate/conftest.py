"""A provider of our own; its key is in the environment, as a person's would be."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.running import Run
from helpers.server import KEY, Provider


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    running = Provider()
    yield running
    running.close()


@pytest.fixture
def run(provider: Provider, tmp_path: Path) -> Run:
    return Run(provider, tmp_path)
