"""What is read about the host: how much memory is free, also in a container with a limit."""

from pathlib import Path

import pytest

from pkb.hardware.host import read_available_memory

GIB = 1 << 30


@pytest.mark.parametrize(
    ("folder", "limit", "usage", "cache"),
    [
        (".", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
)
def test_the_limit_of_a_container_counts(tmp_path: Path, folder: str, limit: str, usage: str, cache: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    for name, text in {limit: "100000", usage: "40000", "memory.stat": f"anon 30000\n{cache} 5000"}.items():
        (tmp_path / folder / name).write_text(f"{text}\n")
    assert read_available_memory(tmp_path) == 65_000
    (tmp_path / folder / usage).write_text("200000\n")
    assert read_available_memory(tmp_path) == 0


def test_without_a_limit_the_machine_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("40000\n")
    assert read_available_memory(tmp_path) > GIB
