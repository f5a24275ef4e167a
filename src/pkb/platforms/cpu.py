"""Ranks are processes, collectives are gloo's, Triton kernels are interpreted.

Correctness on any machine. Times are CPU times and say nothing about a GPU.
"""

import contextlib
import os
import platform as system
import sys
import time
from pathlib import Path

import torch

from pkb.hardware.host import read_available_memory
from pkb.platforms import Platform
from pkb.platforms._slow_rank import set_barrier_delay

_MEMORY_SHARE = 0.6
_BARRIER_DELAY_SHARE = 0.25


class Cpu(Platform):
    name = "cpu"
    preference = 0
    preloaded = (
        *("triton.language", "pkb.platforms._interpreter", "pkb.platforms._interpreted_driver"),
        "pkb.platforms._symmetric",
    )

    def make_environment(self, folder: Path) -> dict[str, str]:
        # Triton decides at import whether it interprets. gloo would otherwise look for an address of the host name.
        return {"TRITON_INTERPRET": "1", "GLOO_SOCKET_IFNAME": _loopback(), "CUDA_VISIBLE_DEVICES": ""}

    def compute_memory_limit(self, world: int) -> int | None:
        return int(_MEMORY_SHARE * read_available_memory() / world)

    def enter(self, rank: int, world: int, shared_folder: Path) -> torch.device:
        from pkb.platforms import _interpreter, _symmetric

        torch.set_num_threads(1)
        _avoid_preemption()
        _symmetric.install(shared_folder)
        _interpreter.patch_interpreter()
        return torch.device("cpu")

    def delay(self, seconds: float) -> None:
        time.sleep(seconds)
        set_barrier_delay(seconds * _BARRIER_DELAY_SHARE)


def _avoid_preemption() -> None:
    """Keep gloo's threads, which poll for messages, from preempting ranks that compute.

    Where ranks outnumber cores, small collectives would take several times as long. They also work without it.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _loopback() -> str:
    return "lo0" if system.system() == "Darwin" else "lo"


PLATFORM = Cpu()
