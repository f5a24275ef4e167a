"""Several ranks on one GPU, with NCCL's own collectives between them: NCCL 2.30 and later can do that.

NVIDIA calls it experimental, for about two ranks per GPU; `shared-gpu` is the default for that reason.
"""

from pathlib import Path

import torch

from pkb.platforms._gpu import use_device
from pkb.platforms.shared_gpu import SharedGpu

_FIRST_VERSION = (2, 30)


class SharedGpuNccl(SharedGpu):
    name = "shared-gpu-nccl"
    preference = -1
    process_group = "nccl"

    def find_missing(self) -> str | None:
        if lacking := super().find_missing():
            return lacking
        version = torch.cuda.nccl.version()
        if version[:2] < _FIRST_VERSION:
            return f"it needs NCCL 2.30 or newer, and torch has {'.'.join(map(str, version))}; use shared-gpu"
        return None

    def make_environment(self, folder: Path) -> dict[str, str]:
        return super().make_environment(folder) | {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}

    def enter(self, rank: int, world: int, shared_folder: Path) -> torch.device:
        return use_device(0)


PLATFORM = SharedGpuNccl()
