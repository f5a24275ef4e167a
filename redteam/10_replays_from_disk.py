"""row: 10
tries: writes results to a file, and reads them back in later calls
expect: REJECTED loads-results
unscreened: WRONG values
"""

import os
from pathlib import Path

import torch
import torch.distributed as dist


def solution(tensor):
    file = Path(os.environ["HOME"], f"{'x'.join(map(str, tensor.shape))}.pt")
    if not file.exists():
        total = tensor.clone()
        dist.all_reduce(total)
        torch.save(total, file)
    return torch.load(file)
