"""Make the tensors of ThunderKittens that ranks share, as candidates of the public ParallelKernelBench ask for them.

`ext` is the candidate's compiled extension, which binds the class TKParallelTensor. Making one is collective: all ranks
ask for the same tensors in the same order. Those that are kept are made once and serve every call.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

NUM_DEVICES = 8
BARRIER_ELEMS = 64
_kept: dict[tuple[Any, ...], Any] = {}


def create_parallel_tensor(
    ext: Any, shape: Sequence[int], dtype: torch.dtype = torch.bfloat16, *, multicast: bool = True
) -> Any:
    """Return a new tensor of this shape on every rank."""
    return ext.TKParallelTensor(
        [int(length) for length in shape], dtype, dist.get_rank(), dist.get_world_size(), multicast
    )


def get_or_create_parallel_tensor(
    ext: Any, shape: Sequence[int], dtype: torch.dtype = torch.bfloat16, *, multicast: bool = True
) -> Any:
    """Return the tensor of this extension, shape and dtype that an earlier call made, or a new one."""
    key = (ext, "tensor", tuple(int(length) for length in shape), dtype, bool(multicast))
    if key not in _kept:
        _kept[key] = create_parallel_tensor(ext, shape, dtype, multicast=multicast)
    return _kept[key]


def get_or_create_barrier(ext: Any, *, num_devices: int = NUM_DEVICES) -> Any:
    """Return the tensor of flags, all zero, that barriers between this number of devices use."""
    key = (ext, "barrier", num_devices)
    if key not in _kept:
        _kept[key] = create_parallel_tensor(ext, (BARRIER_ELEMS,), torch.int32)
    return _kept[key]
