"""What the driver says of its GPUs at this moment."""

import ctypes
import shutil
import subprocess

import pytest

from pkb.platforms import _nvml
from pkb.platforms._gpu import _to_gib

lacking = None if shutil.which("nvidia-smi") else "nvidia-smi is not on the PATH"


def test_without_the_library_there_is_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nvml, "_LIBRARY", "libof-nobody.so.1")
    _nvml._find_devices.cache_clear()
    assert _nvml.read_clocks() == []
    _nvml._find_devices.cache_clear()


def test_what_a_gpu_does_not_tell_is_none() -> None:
    def refused(device: ctypes.c_void_p, answer: object) -> int:
        return 3

    assert _nvml._query(refused, ctypes.c_void_p()) is None


@pytest.mark.parametrize(("said", "gib"), [(143771, 140.4), ("[N/A]", None)])
def test_not_every_gpu_has_a_memory_of_its_own(said: int | str, gib: float | None) -> None:
    assert _to_gib(said) == gib


@pytest.mark.gpu
@pytest.mark.skipif(lacking is not None, reason=f"no GPU here: {lacking}")
def test_it_says_what_nvidia_smi_says() -> None:
    asked = "--query-gpu=temperature.gpu,power.draw"
    said = subprocess.run(["nvidia-smi", asked, "--format=csv,noheader,nounits"], capture_output=True, text=True)
    rows = [line.split(", ") for line in said.stdout.splitlines()]
    found = _nvml.read_clocks()
    # Of another moment: idle GPUs change their clocks.
    assert all(abs(gpu["celsius"] - int(row[0])) <= 5 for gpu, row in zip(found, rows, strict=True))
    assert all(0.5 < gpu["watts"] / float(row[1]) < 2 for gpu, row in zip(found, rows, strict=True))
    assert all(0 < gpu["sm_mhz"] < 5000 and 0 < gpu["memory_mhz"] < 20000 and gpu["state"][0] == "P" for gpu in found)
