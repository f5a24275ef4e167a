"""A process group whose collectives run on the device, over memory that all ranks have mapped.

NCCL (before 2.30) refuses several ranks on one GPU, and gloo goes through the host. Here every rank pushes data into a
slot of each peer's staging buffer, all ranks meet at a barrier on the device, and each rank copies or adds up its own
slots. The caller's stream orders everything; nothing waits on the host. Two halves of the staging buffer take turns, so
one barrier per exchange is enough.
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
    """A process group whose collectives torch.distributed calls."""

    _serial = itertools.count()

    def __init__(self, store: Any, rank: int, size: int, rendezvous: Rendezvous, slot_bytes: int):
        super().__init__(rank, size)
        self._me, self._size = rank, size
        self._slot = slot_bytes
        # Two halves for collectives, then the slots of point-to-point messages.
        self.symmetric_name = f"pkb-symmetric-{next(self._serial)}"
        """The group's name in torch's symmetric memory, which finds stores by name: a group in Python has none."""
        own_store = dist.PrefixStore("symmetric", store)
        self._staging, self._handle = rendezvous(3 * size * slot_bytes, self.symmetric_name, rank, size, own_store)
        self._half = 0
        self._unacknowledged: set[int] = set()

    def getBackendName(self) -> str:  # noqa: N802
        return BACKEND

    @property
    def group_name(self) -> str:
        """The name under which torch has registered the group; compilers ask for it."""
        return dist.distributed_c10d._world.pg_names[self]

    def __repr__(self) -> str:
        return f"DeviceGroup(rank {self._me} of {self._size})"

    # Collectives.

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> Any:
        for tensor in tensors:
            op = _find_op(opts)
            self._reduce_into(tensor, [tensor] * self._size, op)
        return _complete(tensors)

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: list[Tensor], opts: Any = None) -> Any:
        for tensor in tensors:
            blocks = [tensor if peer == opts.rootRank else None for peer in range(self._size)]
            self._reduce_into(tensor if self._me == opts.rootRank else None, blocks, _find_op(opts))
        return _complete(tensors)

    def broadcast(self, tensors: list[Tensor], opts: Any = None) -> Any:
        for tensor in tensors:
            is_root = self._me == opts.rootRank
            sent = [tensor if is_root else None] * self._size
            wanted = [tensor if source == opts.rootRank else None for source in range(self._size)]
            self._exchange(sent, [None] * self._size if is_root else wanted)
        return _complete(tensors)

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Any:
        for blocks, own in zip(outputs, inputs, strict=True):
            self._exchange([own] * self._size, blocks)
        return _complete(outputs)

    def _allgather_base(self, output: Tensor, own: Tensor, opts: Any = None) -> Any:
        self._exchange([own] * self._size, list(output.view(self._size, -1).unbind()))
        return _complete(output)

    def allgather_into_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Any:
        for output, own in zip(outputs, inputs, strict=True):
            self._allgather_base(output, own)
        return _complete(outputs)

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Any:
        for k, own in enumerate(inputs):
            sent = [own if peer == opts.rootRank else None for peer in range(self._size)]
            self._exchange(sent, outputs[k] if self._me == opts.rootRank else [None] * self._size)
        return _complete(outputs)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Any:
        for k, output in enumerate(outputs):
            sent = inputs[k] if self._me == opts.rootRank else [None] * self._size
            self._exchange(sent, [output if source == opts.rootRank else None for source in range(self._size)])
        return _complete(outputs)

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Any:
        for output, blocks in zip(outputs, inputs, strict=True):
            self._reduce_into(output, blocks, _find_op(opts))
        return _complete(outputs)

    def _reduce_scatter_base(self, output: Tensor, own: Tensor, opts: Any = None) -> Any:
        self._reduce_into(output, list(own.reshape(self._size, -1).unbind()), _find_op(opts))
        return _complete(output)

    def reduce_scatter_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Any:
        for output, own in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, own, opts)
        return _complete(outputs)

    def alltoall_base(
        self, output: Tensor, own: Tensor, output_sizes: list[int], input_sizes: list[int], opts: Any = None
    ) -> Any:
        self._exchange(_split(own, input_sizes, self._size), _split(output, output_sizes, self._size))
        return _complete(output)

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Any:
        self._exchange(inputs, outputs)
        return _complete(outputs)

    def barrier(self, opts: Any = None) -> Any:
        self._handle.barrier(_BARRIER)
        if self._staging.is_cuda:
            torch.cuda.current_stream().synchronize()
        return _complete(None)

    # Newer releases of torch use these names.
    all_reduce, all_gather, all_to_all, all_to_all_single = allreduce, allgather, alltoall, alltoall_base
    all_gather_single, reduce_scatter_single = _allgather_base, _reduce_scatter_base

    # Point to point: the receiver's signal frees the sender's slot.

    def send(self, tensors: list[Tensor], dst: int, tag: int = 0) -> Any:
        for tensor in tensors:
            if dst in self._unacknowledged:
                self._handle.wait_signal(dst, _TAKEN)
            self._check_size(tensor)
            self._place(dst, self._me, 2, _view_bytes(tensor, slice(None)))
            self._handle.put_signal(dst, _ARRIVED)
            self._unacknowledged.add(dst)
        return _complete(tensors)

    def recv(self, tensors: list[Tensor], src: int, tag: int = 0) -> Any:
        for tensor in tensors:
            self._handle.wait_signal(src, _ARRIVED)
            _store(tensor, self._view(self._me, src, 2, _count_bytes(tensor)))
            self._handle.put_signal(src, _TAKEN)
        return _complete(tensors)

    def _exchange(self, sent: Sequence[Tensor | None], wanted: Sequence[Tensor | None]) -> None:
        """Push a block to each peer, wait for all ranks, and take a block from each source. None means no block."""
        own, target = sent[self._me], wanted[self._me]
        if own is not None and target is not None:
            target.copy_(own.view(target.shape))
        sent = [None if peer == self._me else block for peer, block in enumerate(sent)]
        wanted = [None if source == self._me else block for source, block in enumerate(wanted)]
        rounds = self._count_rounds([*sent, *wanted])
        for step in range(rounds):
            self._push([self._cut_piece(block, step) for block in sent])
            for source, block in enumerate(wanted):
                if block is not None:
                    piece = self._cut_piece(block, step)
                    assert piece is not None
                    self._pull(source, block, step, piece.numel())

    def _reduce_into(self, output: Tensor | None, blocks: Sequence[Tensor | None], op: Any) -> None:
        """Push block r to rank r, wait for all ranks, and reduce the blocks in rank order, 16-bit floats in float32."""
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

    def _count_rounds(self, blocks: Sequence[Tensor | None]) -> int:
        """Return the number of rounds. Large blocks must have one size, so that all ranks count the same rounds."""
        largest = max((_count_bytes(block) for block in blocks if block is not None), default=0)
        rounds = max(1, -(-largest // self._slot))
        if rounds > 1 and len({_count_bytes(block) for block in blocks if block is not None}) > 1:
            raise RuntimeError(f"uneven exchange of {largest} bytes: blocks are limited to {self._slot} bytes here")
        return rounds

    def _cut_piece(self, block: Tensor | None, step: int) -> Tensor | None:
        return None if block is None else _view_bytes(block, slice(step * self._slot, (step + 1) * self._slot))

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

    def _check_size(self, tensor: Tensor) -> None:
        if _count_bytes(tensor) > self._slot:
            raise RuntimeError(f"a message of {_count_bytes(tensor)} bytes: the limit is {self._slot} bytes here")


def _find_op(opts: Any) -> Any:
    op = opts.reduceOp if opts else dist.ReduceOp.SUM
    return next((known for known in _REDUCTIONS if op == known), op)


def _count_bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _view_bytes(tensor: Tensor, part: slice) -> Tensor:
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
    elif found.numel() == _count_bytes(tensor):
        tensor.copy_(found.clone().view(tensor.dtype).view(tensor.shape))
    else:
        raise RuntimeError("a large message needs a contiguous tensor to arrive in")


def _split(tensor: Tensor, sizes: list[int], world: int) -> list[Tensor | None]:
    sizes = list(sizes) or [tensor.shape[0] // world] * world
    return list(tensor.split(sizes))


def _complete(result: Any) -> Any:
    """Return a work handle that is already complete: the stream keeps the order."""
    future: Future[Any] = Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)
