"""row: honest
tries: chooses the tile of a kernel by autotuning, with a key, pruning, and heuristics on top
track: scratch
expect: CORRECT
"""

import torch
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier, sum_tiles

CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
    for block, warps, stages in ((16, 4, 1), (64, 4, 2), (64, 8, 3), (256, 8, 2))
]


@triton.jit
def publish(x, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)


@triton.autotune(
    CONFIGS, key=["count"], prune_configs_by={"early_config_prune": lambda configs, args, **_: configs[1:]}
)
@triton.heuristics({"EVEN": lambda args: args["count"] % args["BLOCK"] == 0})
@triton.jit
def add_up(
    out, buffers, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr
):
    tl.static_assert(BLOCK >= 64)
    sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


def solution(tensor):
    tensor = tensor.contiguous()
    count, out = tensor.numel(), torch.empty_like(tensor)
    ex = exchange(count, tensor.dtype, tensor.device)
    offset = ex.next_offset()
    publish[(1,)](tensor, ex.buffers, ex.signals, offset, count, ex.rank, ex.world, 64)
    add_up[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](out, ex.buffers, offset, count, ex.rank, ex.world)
    return out
