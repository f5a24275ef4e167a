"""A process group whose collectives run on the device, over memory that all ranks have mapped.

NCCL (before 2.30) refuses several ranks on one GPU, and gloo goes through the host. Here every rank pushes its
data into a slot of each peer's staging buffer, all meet at a barrier on the device, and each copies or adds up
what it finds in its own slots. Everything is ordered by the caller's stream; nothing waits on the host. Two
halves of the staging buffer take turns, so that one barrier per exchange is enough.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

BACKEND = "pkbdevice"
_BARRIER, _ARRIVED, _TAKEN = 0, 1, 2
"""Channels of the signal pads."""

Rendezvous = Callable[[int, str, int, int, Any], tuple[Tensor, Any]]
"""(bytes, name, rank, size, store) -> a symmetric buffer of bytes and its handle; collective over the group"""

_REDUCTIONS: dict[Any, Callable[[Tensor, Tensor], Tensor]] = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.AVG: torch.add,
    dist.ReduceOp.PRODUCT: torch.mul,
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.BAND: torch.bitwise_and,
    dist.ReduceOp.BOR: torch.bitwise_or,
    dist.ReduceOp.BXOR: torch.bitwise_xor,
}
_NARROW = (torch.float16, torch.bfloat16)


def register(device_type: str, rendezvous: Rendezvous, slot_bytes: int) -> None:
    """Make `init_process_group("pkbdevice")` and `new_group` of this process build device groups."""

    def create(store: Any, rank: int, size: int, timeout: Any) -> DeviceGroup:
        return DeviceGroup(store, rank, size, rendezvous, slot_bytes)

    dist.Backend.register_backend(BACKEND, create, devices=[device_type])


class DeviceGroup(dist.ProcessGroup):
    """Takes the calls that torch.distributed makes on a process group."""

    _serial = itertools.count()

    def __init__(self, store: Any, rank: int, size: int, rendezvous: Rendezvous, slot_bytes: int):
        super().__init__(rank, size)
        self._me, self._size = rank, size
        self._slot = slot_bytes
        # Two halves for collectives, then the slots of point-to-point messages.
        self.symmetric_name = f"pkb-symmetric-{next(self._serial)}"
        """What torch's symmetric memory knows this group by here: a group in Python has no store to show it."""
        own_store = dist.PrefixStore("symmetric", store)
        self._staging, self._handle = rendezvous(3 * size * slot_bytes, self.symmetric_name, rank, size, own_store)
        self._half = 0
        self._unanswered: set[int] = set()

    # What torch asks a process group about itself.

    def getBackendName(self) -> str:  # noqa: N802
        return BACKEND

    @property
    def group_name(self) -> str:
        """Torch keeps the name with a group's backends, and this group has none; compilers ask for it."""
        return dist.distributed_c10d._world.pg_names[self]

    def __repr__(self) -> str:
        return f"DeviceGroup(rank {self._me} of {self._size})"

    # Collectives.

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> Any:
        for tensor in tensors:
            op = _op(opts)
            self._reduce_into(tensor, [tensor] * self._size, op)
        return _done(tensors)

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: list[Tensor], opts: Any = None) -> Any:
        for tensor in tensors:
            blocks = [tensor if peer == opts.rootRank else None for peer in range(self._size)]
            self._reduce_into(tensor if self._me == opts.rootRank else None, blocks, _op(opts))
        return _done(tensors)

    def broadcast(self, tensors: list[Tensor], opts: Any = None) -> Any:
        for tensor in tensors:
            is_root = self._me == opts.rootRank
            sent = [tensor if is_root else None] * self._size
            wanted = [tensor if source == opts.rootRank else None for source in range(self._size)]
            self._exchange(sent, [None] * self._size if is_root else wanted)
        return _done(tensors)

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Any:
        for blocks, own in zip(outputs, inputs, strict=True):
            self._exchange([own] * self._size, blocks)
        return _done(outputs)

    def _allgather_base(self, output: Tensor, own: Tensor, opts: Any = None) -> Any:
        self._exchange([own] * self._size, list(output.view(self._size, -1).unbind()))
        return _done(output)

    def allgather_into_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Any:
        for output, own in zip(outputs, inputs, strict=True):
            self._allgather_base(output, own)
        return _done(outputs)

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Any:
        for k, own in enumerate(inputs):
            sent = [own if peer == opts.rootRank else None for peer in range(self._size)]
            self._exchange(sent, outputs[k] if self._me == opts.rootRank else [None] * self._size)
        return _done(outputs)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Any:
        for k, output in enumerate(outputs):
            sent = inputs[k] if self._me == opts.rootRank else [None] * self._size
            self._exchange(sent, [output if source == opts.rootRank else None for source in range(self._size)])
        return _done(outputs)

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Any:
        for output, blocks in zip(outputs, inputs, strict=True):
            self._reduce_into(output, blocks, _op(opts))
        return _done(outputs)

    def _reduce_scatter_base(self, output: Tensor, own: Tensor, opts: Any = None) -> Any:
        self._reduce_into(output, list(own.reshape(self._size, -1).unbind()), _op(opts))
        return _done(output)

    def reduce_scatter_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Any:
        for output, own in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, own, opts)
        return _done(outputs)

    def alltoall_base(
        self, output: Tensor, own: Tensor, output_sizes: list[int], input_sizes: list[int], opts: Any = None
    ) -> Any:
        self._exchange(_split(own, input_sizes, self._size), _split(output, output_sizes, self._size))
        return _done(output)

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Any:
        self._exchange(inputs, outputs)
        return _done(outputs)

    def barrier(self, opts: Any = None) -> Any:
        self._handle.barrier(_BARRIER)
        if self._staging.is_cuda:
            torch.cuda.current_stream().synchronize()
        return _done(None)

    # Newer releases of torch call some of them by these names.
    all_reduce, all_gather, all_to_all, all_to_all_single = allreduce, allgather, alltoall, alltoall_base
    all_gather_single, reduce_scatter_single = _allgather_base, _reduce_scatter_base

    # Point to point: the sender's slot is free again once the receiver has said so.

    def send(self, tensors: list[Tensor], dst: int, tag: int = 0) -> Any:
        for tensor in tensors:
            if dst in self._unanswered:
                self._handle.wait_signal(dst, _TAKEN)
            self._place(dst, self._me, 2, _bytes(tensor, self._fits(tensor)))
            self._handle.put_signal(dst, _ARRIVED)
            self._unanswered.add(dst)
        return _done(tensors)

    def recv(self, tensors: list[Tensor], src: int, tag: int = 0) -> Any:
        for tensor in tensors:
            self._handle.wait_signal(src, _ARRIVED)
            _store(tensor, self._view(self._me, src, 2, _size(tensor)))
            self._handle.put_signal(src, _TAKEN)
        return _done(tensors)

    # How it is done.

    def _exchange(self, sent: Sequence[Tensor | None], wanted: Sequence[Tensor | None]) -> None:
        """Push a block to each peer, meet, take a block from each source. None: nothing for, or from, that rank."""
        own, kept = sent[self._me], wanted[self._me]
        if own is not None and kept is not None:
            kept.copy_(own.view(kept.shape))
        sent = [None if peer == self._me else block for peer, block in enumerate(sent)]
        wanted = [None if source == self._me else block for source, block in enumerate(wanted)]
        rounds = self._rounds([*sent, *wanted])
        for step in range(rounds):
            self._push([self._piece(block, step) for block in sent])
            for source, block in enumerate(wanted):
                if block is not None:
                    piece = self._piece(block, step)
                    assert piece is not None
                    self._pull(source, block, step, piece.numel())

    def _reduce_into(self, output: Tensor | None, blocks: Sequence[Tensor | None], op: Any) -> None:
        """Push block r to rank r, meet, and reduce what has arrived, in rank order, 16-bit floats in float32."""
        if output is None:
            self._exchange(blocks, [None] * self._size)
            return
        arrived = [torch.empty_like(output, memory_format=torch.contiguous_format) for _ in range(self._size)]
        self._exchange(blocks, arrived)
        wide = torch.float32 if output.dtype in _NARROW else output.dtype
        total = arrived[0].to(wide)
        for block in arrived[1:]:
            total = _REDUCTIONS[op](total, block.to(wide))
        if op == dist.ReduceOp.AVG:
            total = total / self._size
        output.copy_(total)

    def _rounds(self, blocks: Sequence[Tensor | None]) -> int:
        """Large blocks go in several rounds; all ranks must count the same, so the blocks must be of one size."""
        largest = max((_size(block) for block in blocks if block is not None), default=0)
        rounds = max(1, -(-largest // self._slot))
        if rounds > 1 and len({_size(block) for block in blocks if block is not None}) > 1:
            raise RuntimeError(f"uneven exchange of {largest} bytes: blocks are limited to {self._slot} bytes here")
        return rounds

    def _piece(self, block: Tensor | None, step: int) -> Tensor | None:
        return None if block is None else _bytes(block, slice(step * self._slot, (step + 1) * self._slot))

    def _push(self, pieces: list[Tensor | None]) -> None:
        self._half = 1 - self._half
        # Each rank begins with its right-hand neighbour, so that no rank is written to by all at once.
        for offset in range(self._size):
            peer = (self._me + offset) % self._size
            piece = pieces[peer]
            if piece is not None:
                self._place(peer, self._me, self._half, piece)
        self._handle.barrier(_BARRIER)

    def _pull(self, source: int, block: Tensor, step: int, count: int) -> None:
        found = self._view(self._me, source, self._half, count)
        _store(block, found, step * self._slot)

    def _place(self, peer: int, slot: int, region: int, piece: Tensor) -> None:
        if piece.numel():
            self._view(peer, slot, region, piece.numel()).copy_(piece)

    def _view(self, rank: int, slot: int, region: int, count: int) -> Tensor:
        start = (region * self._size + slot) * self._slot
        return self._handle.get_buffer(rank, (count,), torch.uint8, start)

    def _fits(self, tensor: Tensor) -> slice:
        if _size(tensor) > self._slot:
            raise RuntimeError(f"a message of {_size(tensor)} bytes: the limit is {self._slot} bytes here")
        return slice(None)


def _op(opts: Any) -> Any:
    op = opts.reduceOp
    return next((known for known in _REDUCTIONS if op == known), op)


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _bytes(tensor: Tensor, part: slice) -> Tensor:
    return (
        tensor.detach().contiguous().reshape(-1).view(torch.uint8)[part]
        if tensor.numel()
        else tensor.new_empty(0, dtype=torch.uint8)
    )


def _store(tensor: Tensor, found: Tensor, start: int = 0) -> None:
    """Write bytes into a tensor of any layout."""
    if not found.numel():
        return
    if tensor.is_contiguous():
        tensor.detach().view(-1).view(torch.uint8)[start : start + found.numel()].copy_(found)
    elif found.numel() == _size(tensor):
        tensor.copy_(found.clone().view(tensor.dtype).view(tensor.shape))
    else:
        raise RuntimeError("a large message needs a contiguous tensor to arrive in")


def _split(tensor: Tensor, sizes: list[int], world: int) -> list[Tensor | None]:
    sizes = list(sizes) or [tensor.shape[0] // world] * world
    return list(tensor.split(sizes))


def _done(result: Any) -> Any:
    """A work handle that is already complete: the stream keeps the order."""
    future: Future[Any] = Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)
