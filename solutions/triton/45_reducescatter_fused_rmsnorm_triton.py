"""Reduce-scatter + RMSNorm: chunks go straight to the rank that averages them; it norms rows as it sums them."""

import torch
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier

BLOCK = 2048


@triton.jit
def send_chunks(x, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    # A rank's buffer has a slot of `count` elements for each sender.
    for step in range(1, WORLD):
        target = (RANK + step) % WORLD
        copy_tiles(x + target * count, peer(buffers, target, x) + offset + RANK * count, count, BLOCK)
    # This kernel ends when all its programs have met their namesakes: the next one finds all chunks.
    rank_barrier(signals, RANK, WORLD)


@triton.jit
def average_and_norm(
    x,
    gamma,
    out,
    buffers,
    offset,
    M,
    N,
    eps,
    RANK: tl.constexpr,
    WORLD: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, WIDTH)
    place = rows[:, None] * N + cols[None, :]
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    slots = peer(buffers, RANK, x) + offset
    total = tl.load(x + RANK * M * N + place, mask=inside, other=0.0).to(tl.float32)
    for step in range(1, WORLD):
        sender = (RANK + step) % WORLD
        total += tl.load(slots + sender * M * N + place, mask=inside, other=0.0).to(tl.float32)
    # The average has the input's dtype; the norm is computed in float32.
    mean = (total / WORLD).to(out.dtype.element_ty).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(mean * mean, axis=1) / N + eps)
    weight = tl.load(gamma + cols, mask=cols < N, other=0.0).to(tl.float32)
    normed = mean * scale[:, None] * weight[None, :]
    tl.store(out + place, normed.to(out.dtype.element_ty), mask=inside)


def solution(rs_input_1d: torch.Tensor, gamma: torch.Tensor, eps: float) -> torch.Tensor:
    x, gamma = rs_input_1d.contiguous(), gamma.contiguous()
    ex = exchange(x.numel(), x.dtype, x.device)
    count, N = x.numel() // ex.world, gamma.numel()
    M = count // N
    out = x.new_empty(M, N)
    offset = ex.next_offset()
    grid = (ex.programs(triton.cdiv(count, BLOCK), per_sm=4),)
    send_chunks[grid](x, ex.buffers, ex.signals, offset, count, ex.rank, ex.world, BLOCK)
    width = triton.next_power_of_2(N)
    rows = max(1, 1024 // width)
    warps = 4 if width <= 2048 else 16
    average_and_norm[(triton.cdiv(M, rows),)](
        x, gamma, out, ex.buffers, offset, M, N, eps, ex.rank, ex.world, rows, width, num_warps=warps
    )
    return out
