"""One rank that puts the device group next to gloo: every collective, dtype and sub-group must agree.

Started by device_group.py as: run_device_group.py STORE_FILE WORLD DEVICE SHARED_FOLDER RANK
"""

import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

from pkb.platforms import _device_group, load_platforms
from pkb.platforms._symmetric import SymmetricMemory

SLOT = 4096
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8]
COPIED_ONLY = [torch.complex64, torch.float8_e4m3fn, torch.bool]
"""Gloo has no such types: it moves the same values as float64."""


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Noughts and ones: exact in every dtype and in any order of sums. The same on every device."""
    return torch.randint(0, 2, shape, device="cpu").to(dtype).to(torch.empty(0).device)


def agree(name: str, device: str, our_call, our_group, their_call, their_group) -> None:
    """The same call on both groups, from the same inputs, ours on the device."""
    results = []
    for call, group, place in ((our_call, our_group, device), (their_call, their_group, "cpu")):
        torch.manual_seed(dist.get_rank() + 17)
        with torch.device(place):
            results.append([tensor.cpu() for tensor in call(group)])
    for ours, theirs in zip(*results, strict=True):
        assert torch.equal(ours.to(torch.complex128), theirs.to(torch.complex128)), (name, ours, theirs)


def reductions(world: int, dtype: torch.dtype):
    def all_reduce(group):
        x = values(5, 7, dtype=dtype)
        dist.all_reduce(x, group=group)
        return [x]

    def maximum(group):
        x = values(3, 3, dtype=dtype).T
        dist.all_reduce(x, op=dist.ReduceOp.MAX, group=group)
        return [x]

    def reduce(group):
        x = values(6, dtype=dtype)
        dist.reduce(x, group=group, group_dst=world - 1)
        return [x] if dist.get_rank(group) == world - 1 else []

    def reduce_scatter_tensor(group):
        out = torch.empty(4, 3, dtype=dtype)
        dist.reduce_scatter_tensor(out, values(4 * world, 3, dtype=dtype), group=group)
        return [out]

    def compiled(group):
        # What torch.compile makes of dist.all_reduce: an operator that finds the group by its name.
        return [funcol.all_reduce(values(3, 2, dtype=dtype), "sum", group) * 1]

    return [all_reduce, maximum, reduce, reduce_scatter_tensor, compiled]


def movements(world: int, dtype: torch.dtype):
    def broadcast(group):
        x = values(9, dtype=dtype)
        dist.broadcast(x, group=group, group_src=1)
        return [x]

    def all_gather(group):
        out = [torch.empty(3, 2, dtype=dtype) for _ in range(world)]
        dist.all_gather(out, values(3, 2, dtype=dtype), group=group)
        return out

    def all_gather_into_tensor(group):
        out = torch.empty(2 * world, 5, dtype=dtype)
        work = dist.all_gather_into_tensor(out, values(2, 5, dtype=dtype), group=group, async_op=True)
        work.wait()
        return [out]

    def gather(group):
        is_root = dist.get_rank(group) == 0
        out = [torch.empty(4, dtype=dtype) for _ in range(world)] if is_root else None
        dist.gather(values(4, dtype=dtype), out, group=group, group_dst=0)
        return out or []

    def scatter(group):
        out = torch.empty(4, dtype=dtype)
        blocks = list(values(world, 4, dtype=dtype).unbind()) if dist.get_rank(group) == 1 else None
        dist.scatter(out, blocks, group=group, group_src=1)
        return [out]

    def all_to_all_single(group):
        out = torch.empty(2 * world, 3, dtype=dtype)
        dist.all_to_all_single(out, values(2 * world, 3, dtype=dtype), group=group)
        return [out]

    def uneven_all_to_all(group):
        rank = dist.get_rank(group)
        sent = [(rank + peer) % 3 for peer in range(world)]
        out = torch.empty(sum(sent), 2, dtype=dtype)
        dist.all_to_all_single(out, values(sum(sent), 2, dtype=dtype), sent, sent, group=group)
        return [out]

    def ring(group):
        rank = dist.get_rank(group)
        out = torch.empty(6, dtype=dtype)
        ops = [
            dist.P2POp(dist.isend, values(6, dtype=dtype), group=group, group_peer=(rank + 1) % world),
            dist.P2POp(dist.irecv, out, group=group, group_peer=(rank - 1) % world),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return [out]

    return [broadcast, all_gather, all_gather_into_tensor, gather, scatter, all_to_all_single, uneven_all_to_all, ring]


def large(group):
    """Over the CPU's small slots it goes in rounds."""
    x = values(3 * SLOT + 5)
    dist.all_reduce(x, group=group)
    return [x]


def enter(device: str, rank: int, world: int, folder: Path) -> None:
    """Make device groups known: on a GPU as its platform does, on the CPU over small slots of its symmetric memory."""
    if device == "cuda":
        load_platforms()["shared-gpu"].enter(rank, world, folder)
        return
    memory = SymmetricMemory(folder)

    def rendezvous(count, name, rank, size, store):
        buffer = memory.empty(count, dtype=torch.uint8)
        return buffer, memory.meet(buffer, name, rank, size, store)

    _device_group.register("cpu", rendezvous, SLOT)


def main() -> None:
    store, world, device, folder, rank = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), int(sys.argv[5])
    enter(device, rank, world, folder)
    dist.init_process_group(
        _device_group.BACKEND, init_method=f"file://{store}", world_size=world, rank=rank, timeout=timedelta(seconds=60)
    )
    half = [list(range(world // 2)), list(range(world // 2, world))]
    ours, theirs = dist.group.WORLD, dist.new_group(backend="gloo")
    own_half = dist.new_subgroups_by_enumeration(half, backend=_device_group.BACKEND)[0]
    gloo_half = dist.new_subgroups_by_enumeration(half, backend="gloo")[0]
    for pair, size in (((ours, theirs), world), ((own_half, gloo_half), world // 2)):
        for dtype in DTYPES:
            for call in movements(size, dtype) + reductions(size, dtype):
                agree(f"{call.__name__} {dtype} {size}", device, call, pair[0], call, pair[1])
        for dtype in COPIED_ONLY:
            for ours_call, gloo_call in zip(movements(size, dtype), movements(size, torch.float64), strict=True):
                agree(f"{ours_call.__name__} {dtype} {size}", device, ours_call, pair[0], gloo_call, pair[1])
    agree("large", device, large, ours, large, theirs)
    objects = [None] * world
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(world)]
    dist.barrier()


if __name__ == "__main__":
    main()
