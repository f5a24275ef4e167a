"""What the driver says of its GPUs at this moment."""

import ctypes
import shutil
import subprocess

import pytest

from pkb.platforms import _nvml

lacking = None if shutil.which("nvidia-smi") else "nvidia-smi is not on the PATH"


def test_without_the_library_there_is_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nvml, "_LIBRARY", "libof-nobody.so.1")
    _nvml._devices.cache_clear()
    assert _nvml.moment() == []
    _nvml._devices.cache_clear()


def test_what_a_gpu_does_not_tell_is_none() -> None:
    def refused(device: ctypes.c_void_p, answer: object) -> int:
        return 3

    assert _nvml._asked(refused, ctypes.c_void_p()) is None


@pytest.mark.gpu
@pytest.mark.skipif(lacking is not None, reason=f"no GPU here: {lacking}")
def test_it_says_what_nvidia_smi_says() -> None:
    asked = "--query-gpu=clocks.mem,temperature.gpu,pstate"
    said = subprocess.run(["nvidia-smi", asked, "--format=csv,noheader,nounits"], capture_output=True, text=True)
    rows = [line.split(", ") for line in said.stdout.splitlines()]
    found = _nvml.moment()
    assert [(str(gpu["memory_mhz"]), gpu["state"]) for gpu in found] == [(row[0], row[2]) for row in rows]
    assert all(abs(gpu["celsius"] - int(row[1])) <= 3 for gpu, row in zip(found, rows, strict=True))
    assert all(0 < gpu["watts"] < 2000 and 0 < gpu["sm_mhz"] < 5000 for gpu in found)
