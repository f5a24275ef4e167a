"""One rank per GPU, NCCL between them."""

from pathlib import Path
from typing import Any

import torch

from pkb.platforms import _nvidia
from pkb.platforms._gpu import Gpu, count_gpus, use_device


class Gpus(Gpu):
    name = "gpus"
    preference = 20
    process_group = "nccl"
    one_device = False

    @property
    def max_ranks(self) -> int | None:
        return count_gpus()

    def find_missing(self) -> str | None:
        found = count_gpus()
        return None if found > 1 else f"it needs at least two GPUs, and torch finds {found}"

    def enter(self, rank: int, world: int, shared_folder: Path) -> torch.device:
        return use_device(rank)

    def describe(self) -> dict[str, Any]:
        links = {"topology": _nvidia.query_topology(), "nvlink": _nvidia.query_nvlinks()}
        return super().describe() | links


PLATFORM = Gpus()
