"""The device-resident process group agrees with gloo in everything, over symmetric memory of the CPU and of a GPU."""

import subprocess
import sys
from pathlib import Path

import pytest

from pkb.nursery.mps import Service
from pkb.platforms import load_platforms

WORLD = 4
lacking = load_platforms()["shared-gpu"].find_missing()


def assert_it_agrees(device: str, folder: Path) -> None:
    script = Path(__file__).parent / "run_device_group.py"
    command = [sys.executable, str(script), str(folder / "store"), str(WORLD), device, str(folder)]
    told = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ranks = [subprocess.Popen([*command, str(rank)], text=True, **told) for rank in range(WORLD)]
    outputs = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * WORLD, "\n".join(outputs)


def test_on_the_cpu(tmp_path: Path) -> None:
    assert_it_agrees("cpu", tmp_path)


@pytest.mark.gpu
@pytest.mark.skipif(lacking is not None, reason=f"no shared GPU here: {lacking}")
def test_on_one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = load_platforms()["shared-gpu"]
    for name, value in platform.make_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    service = Service(list(platform.service_command))
    service.wait_until_up()
    try:
        assert_it_agrees("cuda", tmp_path)
    finally:
        service.stop()
