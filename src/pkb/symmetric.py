"""Symmetric buffers for kernels that exchange data between ranks: what the host does before a launch.

Kernels meet at barriers that spin, block b of one rank with blocks b of the others. That ends only if all blocks
of all ranks can be resident together: a block that waits never makes room for one that has not begun. So the grid
of such a kernel comes from `Exchange.programs`, and nothing else may be larger.
"""

import os
from dataclasses import dataclass
from functools import cache

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

_SHARED = "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES"
_INTERPRETED = 16
"""Programs on a CPU run one after another: more of them are only slower."""
_FEWEST = 8


@dataclass
class Exchange:
    """A symmetric buffer of two halves that calls use in turn.

    One barrier per call is then enough: when a rank writes to a half again, every rank has passed the
    barrier of the call between, so it has finished reading. All calls must divide the work alike.
    """

    rank: int
    world: int
    buffers: int
    """Address of the table of all ranks' buffers, for `peer`."""
    signals: int
    """Address of the table of all ranks' signal pads, for `rank_barrier`."""
    start: int
    """Where, in elements, the first half begins: torch may put several buffers behind one address."""
    half: int
    """Elements in one half."""
    channels: int
    """How many programs may hold a barrier at the same time."""
    resident: int
    """How many programs of the largest kind, one to a multiprocessor, this rank may have on its device."""
    tensor: torch.Tensor
    _calls: int = 0

    def next_offset(self) -> int:
        """Where, in elements, this call's half begins. Ask once per call, on every rank."""
        self._calls += 1
        return self.start + self._calls % 2 * self.half

    def programs(self, tiles: int, per_sm: int = 1) -> int:
        """The grid for so many tiles of work, of blocks of which `per_sm` fit on one multiprocessor."""
        return max(1, min(tiles, self.channels, self.resident * per_sm))


@cache
def exchange(elements: int, dtype: torch.dtype, device: torch.device) -> Exchange:
    """The exchange for payloads of this size. Collective on first use: all ranks must ask for the same."""
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
    """One program per multiprocessor of the device, or of this rank's share where all ranks are on one GPU."""
    if device.type == "cpu":
        return _INTERPRETED
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    return share(processors, world) if os.environ.get(_SHARED) == "1" else processors


def share(processors: int, world: int) -> int:
    return max(_FEWEST, processors // world)
