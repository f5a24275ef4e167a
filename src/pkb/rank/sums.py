"""Add up 16-bit floats of several ranks in one way on every platform.

Gloo, NCCL and our own process group round such sums at different points. The errors that a candidate may make are
measured by the reference's own, and must not depend on where the judge runs. So while the reference runs in a trial,
its ranks only move data through the platform's collectives, and add them up here.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.protocol.sums import Sums
from pkb.rank.collective_observer import ORIGINALS, CompletedWork, find_group_rank

_NARROW = (torch.float16, torch.bfloat16)
_SUMMING = (dist.ReduceOp.SUM, dist.ReduceOp.AVG)
_REPLACED = ("all_reduce", "reduce", "reduce_scatter_tensor")


class SumOverride:
    """A context in which collectives of torch.distributed add up 16-bit floats of three ranks or more as `sums` says.

    A sum of two is rounded once, whoever computes it.
    """

    def __init__(self, sums: Sums):
        self.sums = sums
        self.has_added = False
        """Whether the override has added anything up."""
        self._native = {name: ORIGINALS[name] for name in _REPLACED}

    def __enter__(self) -> "SumOverride":
        self._before = {name: getattr(dist, name) for name in _REPLACED}
        if self.sums is not Sums.NATIVE and dist.get_world_size() > 2:
            for name in _REPLACED:
                # Observers call the originals by name, so that they see what is replaced here.
                ORIGINALS[name] = getattr(self, f"_{name}")
                setattr(dist, name, ORIGINALS[name])
        return self

    def __exit__(self, *_: object) -> None:
        for name in _REPLACED:
            ORIGINALS[name] = self._native[name]
            setattr(dist, name, self._before[name])

    def _all_reduce(
        self, tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        if not self._is_ours(tensor, op, group):
            return self._native["all_reduce"](tensor, op=op, group=group, async_op=async_op)
        tensor.copy_(self._sum_everywhere(tensor, op, group))
        return CompletedWork() if async_op else None

    def _reduce(
        self,
        tensor: Tensor,
        dst: int | None = None,
        op: Any = dist.ReduceOp.SUM,
        group: Any = None,
        async_op: bool = False,
        group_dst: int | None = None,
    ) -> Any:
        if not self._is_ours(tensor, op, group):
            place = {"dst": dst} if group_dst is None else {"group_dst": group_dst}
            return self._native["reduce"](tensor, op=op, group=group, async_op=async_op, **place)
        total = self._sum_everywhere(tensor, op, group)
        if dist.get_rank(group) == find_group_rank(dst, group_dst, group):
            tensor.copy_(total)
        return CompletedWork() if async_op else None

    def _reduce_scatter_tensor(
        self, output: Tensor, input: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        if not self._is_ours(output, op, group):
            return self._native["reduce_scatter_tensor"](output, input, op=op, group=group, async_op=async_op)
        blocks = input.contiguous().view(dist.get_world_size(group), output.numel())
        output.copy_(self._sum_own_block(blocks, op, group).view(output.shape))
        return CompletedWork() if async_op else None

    def _is_ours(self, tensor: Tensor, op: Any, group: Any) -> bool:
        ours = tensor.dtype in _NARROW and op in _SUMMING and dist.get_world_size(group) > 2
        self.has_added = self.has_added or ours
        return ours

    def _sum_everywhere(self, tensor: Tensor, op: Any, group: Any) -> Tensor:
        """Return the sum of all ranks' tensors; each rank adds up one block, as in a ring."""
        world = dist.get_world_size(group)
        size = -(-tensor.numel() // world)
        padded = tensor.new_zeros(world * size)
        padded[: tensor.numel()] = tensor.reshape(-1)
        own = self._sum_own_block(padded.view(world, size), op, group)
        ORIGINALS["all_gather_into_tensor"](padded, own, group=group)
        return padded[: tensor.numel()].view(tensor.shape)

    def _sum_own_block(self, blocks: Tensor, op: Any, group: Any) -> Tensor:
        """Return the sum of what all ranks have in the row of `blocks` that is this rank's."""
        arrived = torch.empty_like(blocks)
        ORIGINALS["all_to_all_single"](arrived, blocks, group=group)
        if op == dist.ReduceOp.AVG:
            # NCCL scales what it sends, by a factor that is rounded too.
            arrived *= 1 / torch.tensor(len(arrived), dtype=blocks.dtype, device=blocks.device)
        return add_in_ring_order(arrived.unbind(), dist.get_rank(group), self.sums)


def add_in_ring_order(blocks: Sequence[Tensor], rank: int, sums: Sums) -> Tensor:
    """Add up one block of every rank, beginning behind `rank`: the order in which a ring adds up this rank's block."""
    ring = [blocks[(rank + 1 + k) % len(blocks)] for k in range(len(blocks))]
    total = ring[0] if sums is Sums.STEPWISE else ring[0].float()
    for block in ring[1:]:
        total = total + block
    return total.to(ring[0].dtype)
