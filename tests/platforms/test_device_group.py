"""The device-resident process group, over the CPU's symmetric memory: it agrees with gloo in everything."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("world", [4])
def test_it_agrees_with_gloo(world: int, tmp_path: Path) -> None:
    script = Path(__file__).parent / "run_device_group.py"
    command = [sys.executable, str(script), str(tmp_path / "store"), str(world)]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for rank in range(world)
    ]
    outputs = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world, "\n".join(outputs)
