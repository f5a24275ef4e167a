"""GEMM + all-reduce: a kernel that fills the GPU multiplies into the buffer, a light one meets the peers and sums."""

import torch
import triton
import triton.language as tl

from pkb.triton_lib import (
    exchange,
    matmul_tile,
    peer,
    rank_barrier,
    store_tile,
    sum_tiles,
    tile_corner,
    tiling,
    two_shot_pays,
    two_shot_sum,
)

BLOCK = 2048


@triton.jit
def multiply(
    a,
    b,
    buffers,
    offset,
    M,
    N,
    K,
    RANK: tl.constexpr,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
    EVEN: tl.constexpr,
):
    row, col = tile_corner(tl.program_id(0), M, N, TILE)
    product = matmul_tile(a, b, row, col, M, N, K, TILE, DEPTH, EVEN)
    store_tile(peer(buffers, RANK, a) + offset, product, row, col, M, N, TILE)


@triton.jit
def all_reduce(
    out,
    buffers,
    signals,
    offset,
    count,
    RANK: tl.constexpr,
    WORLD: tl.constexpr,
    BLOCK: tl.constexpr,
    TWO_SHOT: tl.constexpr,
):
    # Whoever is here has finished the kernel before: its whole product is in its buffer.
    rank_barrier(signals, RANK, WORLD)
    if TWO_SHOT:
        two_shot_sum(buffers, signals, offset, out, count, RANK, WORLD, BLOCK)
    else:
        sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


def solution(A_local: torch.Tensor, B_local: torch.Tensor) -> torch.Tensor:
    A, B = A_local.contiguous(), B_local.contiguous()
    (M, K), N = A.shape, B.shape[1]
    out = A.new_empty(M, N)
    ex = exchange(M * N, A.dtype, A.device)
    offset = ex.next_offset()
    tiles, launch = tiling(M, N, K, A.dtype)
    multiply[(tiles,)](A, B, ex.buffers, offset, M, N, K, ex.rank, **launch)
    large = two_shot_pays(out.nbytes, ex.world)
    grid = (ex.programs(triton.cdiv(M * N, BLOCK * ex.world if large else BLOCK), per_sm=1),)
    all_reduce[grid](out, ex.buffers, ex.signals, offset, M * N, ex.rank, ex.world, BLOCK, large)
    return out
