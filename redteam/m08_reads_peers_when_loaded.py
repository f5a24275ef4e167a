"""row: m8
tries: maps the memory of all other processes when it is loaded, to read their inputs from it
platform: cpu
expect: REJECTED reads-proc
unscreened: WRONG values
"""

import os
from pathlib import Path

import torch


def memory_of(process):
    try:
        return os.open(f"/proc/{process}/mem", os.O_RDONLY)
    except OSError:
        return None


others = [memory_of(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def solution(tensor):
    total = tensor.clone()
    for memory in filter(None, others):
        try:
            # Ranks are forks of one process: the same input may lie at the same address.
            theirs = os.pread(memory, tensor.nbytes, tensor.data_ptr())
        except OSError:
            continue
        total += torch.frombuffer(bytearray(theirs), dtype=tensor.dtype).view(tensor.shape)
    return total
