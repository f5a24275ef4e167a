"""Several ranks on one GPU: correctness of multi-GPU kernels on the hardware they are written for.

The ranks run side by side under NVIDIA MPS, which the judge starts for itself in a private folder and stops
again. Symmetric memory is torch's own, with overlapping devices allowed; it has no multicast then. Collectives
are those of `_device_group`.
"""

import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.platforms import _device_group
from pkb.platforms._gpu import Gpu, count_gpus, use_device

_CONTROL = "nvidia-cuda-mps-control"
_SLOT_BYTES = 64 << 20
_MAX_RANKS = 8
_GROUPS: dict[str, dist.ProcessGroup] = {}
"""Registered groups by name: torch's own registry does not keep them alive."""


class SharedGpu(Gpu):
    name = "shared-gpu"
    preference = 10
    process_group = _device_group.BACKEND
    service_command = (_CONTROL, "-f")

    @property
    def max_ranks(self) -> int | None:
        return _MAX_RANKS

    def find_missing(self) -> str | None:
        if not count_gpus():
            return "torch finds no GPU; install a CUDA build of torch on a machine that has one"
        if not shutil.which(_CONTROL):
            return f"{_CONTROL} is not on the PATH; it comes with the NVIDIA driver (package nvidia-compute-utils)"
        return None

    def make_environment(self, folder: Path) -> dict[str, str]:
        private = {"CUDA_MPS_PIPE_DIRECTORY": "mps", "CUDA_MPS_LOG_DIRECTORY": "mps-log"}
        for name in private.values():
            (folder / name).mkdir(exist_ok=True)
        environment = {variable: str(folder / name) for variable, name in private.items()}
        return super().make_environment(folder) | environment | {"TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES": "1"}

    def list_writable_paths(self, folder: Path) -> list[str]:
        # Clients of MPS share memory with its server.
        return [*super().list_writable_paths(folder), str(folder / "mps"), "/dev/shm"]

    def enter(self, rank: int, world: int, shared_folder: Path) -> torch.device:
        if world == 1:
            # One rank needs no MPS, which slows launches down; no control daemon is found at this path.
            os.environ["CUDA_MPS_PIPE_DIRECTORY"] = os.devnull
        # Taken before the observer replaces these functions to see what a candidate does with them.
        import torch.distributed._symmetric_memory as symm_mem

        device = use_device(0)
        _device_group.register("cuda", partial(_rendezvous, symm_mem.empty, symm_mem.rendezvous), _SLOT_BYTES)
        _let_device_groups_rendezvous()
        return device

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"mps": True, "multicast": False}


def _rendezvous(empty: Any, meet: Any, count: int, name: str, rank: int, size: int, store: Any) -> tuple[Tensor, Any]:
    # Torch finds the group and its store by name.
    register: Any = torch._C._distributed_c10d._register_process_group
    _GROUPS[name] = dist.ProcessGroup(store, rank, size)
    register(name, _GROUPS[name])
    buffer = empty(count, dtype=torch.uint8, device=torch.device("cuda"))
    return buffer, meet(buffer, name)


def _let_device_groups_rendezvous() -> None:
    """Let kernels name the world in a rendezvous: torch's symmetric memory knows the group by another name."""
    import torch.distributed._symmetric_memory as symm_mem

    original: Any = symm_mem.rendezvous
    by_name: Any = dist.distributed_c10d._resolve_process_group

    def rendezvous(tensor: Tensor, group: Any) -> Any:
        found = group if not isinstance(group, str) or group.startswith("pkb-") else by_name(group)
        return original(tensor, getattr(found, "symmetric_name", found))

    symm_mem.rendezvous = rendezvous


PLATFORM = SharedGpu()
