"""One rank per GPU, NCCL between them."""

from pathlib import Path
from typing import Any

import torch

from pkb.platforms import _nvidia
from pkb.platforms._gpu import Gpu, gpu_count, use_device


class Gpus(Gpu):
    name = "gpus"
    preference = 20
    process_group = "nccl"
    one_device = False

    def missing(self) -> str | None:
        found = gpu_count()
        return None if found > 1 else f"it needs at least two GPUs, and torch finds {found}"

    def most_ranks(self) -> int | None:
        return gpu_count()

    def service(self) -> list[str]:
        return []

    def enter(self, rank: int, world: int, shared_folder: Path) -> torch.device:
        return use_device(rank)

    def describe(self) -> dict[str, Any]:
        links = {"topology": _nvidia.topology(), "nvlink": _nvidia.nvlink()}
        return super().describe() | links


PLATFORM = Gpus()
