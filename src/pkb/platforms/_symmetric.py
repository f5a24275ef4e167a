"""`torch.distributed._symmetric_memory` for CPU ranks, over POSIX shared memory.

torch has no CPU backend for symmetric memory. This one has the same functions and handle fields, so that one candidate
file runs unchanged on CPU and GPU. Multicast does not exist here: `multicast_ptr` is 0.

An allocation is one file: the buffer, then the signal pad (zeroed 32-bit words, as in torch).
"""

import itertools
import json
import mmap
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.platforms._slow_rank import sleep_after_barrier

_ALIGNMENT = 4096
_SPINS_BEFORE_SLEEP = 100
_SLEEP_S = 50e-6


def install(folder: Path) -> None:
    """Replace torch's functions in this process, for all imports that follow."""
    import torch.distributed._symmetric_memory as module

    memory = SymmetricMemory(folder)
    replacements: dict[str, Any] = {
        "empty": memory.empty,
        "rendezvous": memory.rendezvous,
        "is_symm_mem_tensor": memory.owns,
        "get_symm_mem_workspace": memory.workspace,
        "enable_symm_mem_for_group": lambda group_name: None,
        "is_symm_mem_enabled_for_group": lambda group_name: True,
        "set_signal_pad_size": memory.set_signal_pad_size,
        "get_signal_pad_size": lambda: memory.signal_pad_size,
        "set_backend": lambda name: None,
        "get_backend": lambda device: "CPU",
    }
    for name, value in replacements.items():
        setattr(module, name, value)
    # The torch.distributed namespace is the public spelling in newer releases.
    dist._symmetric_memory = module


@dataclass
class _Allocation:
    path: Path
    mapping: Tensor
    """Every byte of the file: buffer and signal pad."""
    buffer_size: int
    pad_offset: int


class SymmetricMemory:
    """This rank's allocations, and the handles that it has exchanged with other ranks."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.signal_pad_size = _find_signal_pad_size()
        self._serial = itertools.count()
        self._allocations: dict[int, _Allocation] = {}
        self._handles: dict[tuple[int, str], Handle] = {}
        self._workspaces: dict[str, Tensor] = {}
        self._meetings: dict[str, Iterator[int]] = {}

    def empty(self, *size: Any, dtype: torch.dtype | None = None, device: Any = None) -> Tensor:
        shape = torch.Size(size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size)
        if torch.device(device or "cpu").type != "cpu":
            raise RuntimeError(
                f"symmetric memory was requested on {device}, but this rank computes on the CPU; "
                "take the device from the arguments (tensor.device), so that the file runs everywhere"
            )
        dtype = dtype or torch.get_default_dtype()
        allocation = self._allocate(shape.numel() * dtype.itemsize)
        flat = allocation.mapping[: shape.numel() * dtype.itemsize].view(dtype)
        return flat.view(shape)

    def rendezvous(self, tensor: Tensor, group: Any) -> "Handle":
        """Exchange buffers with all ranks of `group`, a process group or its name. Later calls reuse the handle."""
        group = _resolve_group(group)
        store = dist.distributed_c10d._world.pg_map[group][1]
        return self.meet(tensor, group.group_name, group.rank(), group.size(), store)

    def meet(self, tensor: Tensor, name: str, rank: int, size: int, store: Any) -> "Handle":
        """Exchange buffers with the ranks that share this store."""
        base = tensor.untyped_storage().data_ptr()
        if base not in self._allocations:
            raise RuntimeError("rendezvous needs a tensor from symm_mem.empty(), on every rank")
        if (base, name) not in self._handles:
            self._handles[base, name] = self._exchange(self._allocations[base], name, rank, size, store)
        return self._handles[base, name]

    def owns(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() in self._allocations

    def workspace(self, group_name: Any, min_size: int) -> "Handle":
        group = _resolve_group(group_name)
        held = self._workspaces.get(group.group_name)
        if held is None or held.numel() < min_size:
            held = self._workspaces[group.group_name] = self.empty(min_size, dtype=torch.uint8)
        return self.rendezvous(held, group)

    def set_signal_pad_size(self, size: int) -> None:
        self.signal_pad_size = size

    def _allocate(self, size: int) -> _Allocation:
        pad_offset = -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
        path = self.folder / f"{os.getpid()}-{next(self._serial)}"
        mapping = _map(path, pad_offset + self.signal_pad_size)
        allocation = _Allocation(path, mapping, size, pad_offset)
        self._allocations[mapping.data_ptr()] = allocation
        return allocation

    def _exchange(self, own: _Allocation, name: str, rank: int, size: int, store: Any) -> "Handle":
        meeting = next(self._meetings.setdefault(name, itertools.count()))
        key = f"pkb-symmetric/{meeting}"
        store.set(f"{key}/{rank}", json.dumps([str(own.path), own.buffer_size]))
        found = [json.loads(store.get(f"{key}/{r}")) for r in range(size)]
        if any(buffer_size != own.buffer_size for _, buffer_size in found):
            sizes = ", ".join(str(buffer_size) for _, buffer_size in found)
            raise RuntimeError(f"symmetric buffers must have one size on all ranks, not {sizes} bytes")
        total = own.pad_offset + self.signal_pad_size
        views = [own.mapping if r == rank else _map(Path(path), total) for r, (path, _) in enumerate(found)]
        return Handle(rank, views, own.buffer_size, own.pad_offset)


class Handle:
    """One buffer and signal pad per rank of a group, all mapped into this process."""

    device = torch.device("cpu")
    multicast_ptr = 0
    offset = 0

    def __init__(self, rank: int, views: list[Tensor], buffer_size: int, pad_offset: int):
        self.rank = rank
        self.world_size = len(views)
        self.buffer_size = buffer_size
        self.signal_pad_size = views[0].numel() - pad_offset
        self.buffer_ptrs = [view.data_ptr() for view in views]
        self.signal_pad_ptrs = [view.data_ptr() + pad_offset for view in views]
        self._buffers = views
        self._pads = [view[pad_offset:] for view in views]
        self._words = [pad[: len(pad) // 4 * 4].view(torch.int32).numpy() for pad in self._pads]
        self._tables = [_make_table(ptrs) for ptrs in (self.buffer_ptrs, self.signal_pad_ptrs)]
        self.buffer_ptrs_dev, self.signal_pad_ptrs_dev = (table.data_ptr() for table in self._tables)

    def get_buffer(self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int = 0) -> Tensor:
        return _cut_window(self._buffers[rank][: self.buffer_size], sizes, dtype, storage_offset)

    def get_remote_tensor(self, peer: int, sizes: Sequence[int], dtype: torch.dtype) -> Tensor:
        return self.get_buffer(peer, sizes, dtype)

    def get_signal_pad(
        self, rank: int, sizes: Sequence[int] = (), dtype: torch.dtype | None = None, storage_offset: int = 0
    ) -> Tensor:
        dtype = dtype or torch.uint32
        return _cut_window(self._pads[rank], sizes or [self.signal_pad_size // dtype.itemsize], dtype, storage_offset)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Wait until all ranks of the group have called this on the same channel."""
        peers = [peer for peer in range(self.world_size) if peer != self.rank]
        for peer in peers:
            self.put_signal(peer, channel, timeout_ms)
        for peer in peers:
            self.wait_signal(peer, channel, timeout_ms)

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Raise the flag that `dst_rank` waits for, once that rank has taken down the flag before."""
        # One writer per direction and state, so plain aligned stores suffice; no atomic exchange is needed.
        words, slot = self._words[dst_rank], channel * self.world_size + self.rank
        _spin(lambda: words[slot] == 0, timeout_ms, f"put_signal to rank {dst_rank} on channel {channel}")
        words[slot] = 1

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Wait for the flag that `src_rank` raises, and take it down."""
        words, slot = self._words[self.rank], channel * self.world_size + src_rank
        _spin(lambda: words[slot] == 1, timeout_ms, f"wait_signal from rank {src_rank} on channel {channel}")
        words[slot] = 0
        sleep_after_barrier()


def _spin(done: Callable[[], bool], timeout_ms: int, what: str) -> None:
    deadline = time.monotonic() + timeout_ms / 1000 if timeout_ms else None
    for turn in itertools.count():
        if done():
            return
        if deadline and time.monotonic() > deadline:
            raise RuntimeError(f"{what} timed out after {timeout_ms} ms: the other rank did not take part")
        time.sleep(0 if turn < _SPINS_BEFORE_SLEEP else _SLEEP_S)


def _make_table(addresses: list[int]) -> Tensor:
    """Put addresses into a mapping of their own: the heap may lie so low that Triton takes them for 32-bit numbers."""
    table = torch.frombuffer(mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype=torch.int64)[
        : len(addresses)
    ]
    return table.copy_(torch.tensor(addresses, dtype=torch.int64))


def _cut_window(raw: Tensor, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int) -> Tensor:
    start = storage_offset * dtype.itemsize
    end = start + torch.Size(sizes).numel() * dtype.itemsize
    if end > raw.numel():
        raise RuntimeError(f"{end} bytes were requested, but the symmetric allocation has {raw.numel()}")
    return raw[start:end].view(dtype).view(*sizes)


def _map(path: Path, size: int) -> Tensor:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # Growing a file fills it with zeros; a file of this size stays as it is.
        os.ftruncate(handle, size)
        return torch.frombuffer(mmap.mmap(handle, size), dtype=torch.uint8)
    finally:
        os.close(handle)


def _resolve_group(group: Any) -> dist.ProcessGroup:
    by_name: Any = dist.distributed_c10d._resolve_process_group
    return by_name(group) if isinstance(group, str) else group


def _find_signal_pad_size() -> int:
    return int(getattr(torch._C._distributed_c10d._SymmetricMemory, "signal_pad_size", 0)) or 9216
