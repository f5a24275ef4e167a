"""Layer norm of a few very long rows: many programs summarise blocks of a row, then each norms a block."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def summarise(x, means, squares, M, N, BLOCKS, BLOCK: tl.constexpr):
    """Mean of one block of a row, and the sum of squared distances from it."""
    row = (tl.program_id(0) % M).to(tl.int64)
    block = tl.program_id(0) // M
    place = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < N
    value = tl.load(x + row * N + place, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(value, axis=0) / tl.sum(inside.to(tl.float32), axis=0)
    distance = tl.where(inside, value - mean, 0.0)
    tl.store(means + row * BLOCKS + block, mean)
    tl.store(squares + row * BLOCKS + block, tl.sum(distance * distance, axis=0))


@triton.jit
def norm(x, weight, bias, out, means, squares, M, N, BLOCKS, eps, SUMMARIES: tl.constexpr, BLOCK: tl.constexpr):
    """Norm one block of a row, with the statistics of all its blocks."""
    # Backwards: what was read last may still be in the cache. The same block of all rows shares weight and bias.
    task = tl.num_programs(0) - 1 - tl.program_id(0)
    row = (task % M).to(tl.int64)
    blocks = tl.arange(0, SUMMARIES)
    known = blocks < BLOCKS
    counts = tl.where(known, tl.minimum(N - blocks.to(tl.int64) * BLOCK, BLOCK), 0).to(tl.float32)
    local = tl.load(means + row * BLOCKS + blocks, mask=known, other=0.0)
    mean = tl.sum(local * counts, axis=0) / N
    distance = local - mean
    within = tl.load(squares + row * BLOCKS + blocks, mask=known, other=0.0)
    variance = tl.sum(within + counts * distance * distance, axis=0) / N
    scale = tl.rsqrt(variance + eps)

    place = (task // M).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < N
    value = tl.load(x + row * N + place, mask=inside).to(tl.float32)
    gain = tl.load(weight + place, mask=inside).to(tl.float32)
    shift = tl.load(bias + place, mask=inside).to(tl.float32)
    result = (value - mean) * scale * gain + shift
    tl.store(out + row * N + place, result.to(out.dtype.element_ty), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple[int, ...]):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        weight, bias = self.ln.weight.contiguous(), self.ln.bias.contiguous()
        N = weight.numel()
        M = x.numel() // N
        block = min(8192, triton.next_power_of_2(N))
        blocks = triton.cdiv(N, block)
        means, squares = x.new_empty(2, M, blocks, dtype=torch.float32)
        out = torch.empty_like(x)
        summarise[(M * blocks,)](x, means, squares, M, N, blocks, block, num_warps=8)
        summaries = triton.next_power_of_2(blocks)
        norm[(M * blocks,)](
            x, weight, bias, out, means, squares, M, N, blocks, self.ln.eps, summaries, block, num_warps=8
        )
        return out
