"""Symmetric buffers for kernels that exchange data between ranks: the host's part, before a launch.

Kernels meet at barriers that spin, block b of one rank with blocks b of the others. A barrier ends only if all blocks
of all ranks can be resident together: a block that waits never makes room for a block that has not begun. So the grid
of a kernel with barriers comes from `Exchange.programs` and is never larger.
"""

import os
from dataclasses import dataclass
from functools import cache

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

_ONE_GPU_VARIABLE = "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES"
_CPU_PROGRAMS = 16
"""Programs on a CPU run one after another: a larger grid is only slower."""
_MIN_PROGRAMS = 8


@dataclass
class Exchange:
    """A symmetric buffer of two halves that calls use in turn.

    One barrier per call is then enough: when a rank writes to a half again, every rank has passed the barrier of the
    call between, so it has finished reading. All calls must divide the work in the same way.
    """

    rank: int
    world: int
    buffers: int
    """Address of the table of all ranks' buffers, for `peer`."""
    signals: int
    """Address of the table of all ranks' signal pads, for `rank_barrier`."""
    start: int
    """The first element of the first half: torch may put several buffers behind one address."""
    half: int
    """The number of elements in one half."""
    channels: int
    """The number of programs that may hold a barrier at the same time."""
    resident: int
    """The number of programs that this rank may have on its device, at one per multiprocessor."""
    tensor: torch.Tensor
    _calls: int = 0

    def next_offset(self) -> int:
        """Return the first element of this call's half. Call this once per call, on every rank."""
        self._calls += 1
        return self.start + self._calls % 2 * self.half

    def programs(self, tiles: int, per_sm: int = 1) -> int:
        """Return the grid for this number of tiles of work, where `per_sm` blocks fit on one multiprocessor."""
        return max(1, min(tiles, self.channels, self.resident * per_sm))


@cache
def exchange(elements: int, dtype: torch.dtype, device: torch.device) -> Exchange:
    """Return the exchange for payloads of this size. Collective on first use: all ranks must ask for the same size."""
    tensor = symm_mem.empty(2 * elements, dtype=dtype, device=device)
    world = dist.group.WORLD
    assert world, "torch.distributed is initialised before a kernel is called"
    handle = symm_mem.rendezvous(tensor, world)
    return Exchange(
        rank=handle.rank,
        world=handle.world_size,
        buffers=handle.buffer_ptrs_dev,
        signals=handle.signal_pad_ptrs_dev,
        start=getattr(handle, "offset", 0) // dtype.itemsize,
        half=elements,
        channels=handle.signal_pad_size // (4 * handle.world_size),
        resident=resident_programs(device, handle.world_size),
        tensor=tensor,
    )


def resident_programs(device: torch.device, world: int) -> int:
    """Return one program per multiprocessor of the device, or of this rank's share where all ranks use one GPU."""
    if device.type == "cpu":
        return _CPU_PROGRAMS
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    return share(processors, world) if os.environ.get(_ONE_GPU_VARIABLE) == "1" else processors


def share(processors: int, world: int) -> int:
    """Return a rank's share of a GPU's multiprocessors, and never too few to work with."""
    return max(_MIN_PROGRAMS, processors // world)
