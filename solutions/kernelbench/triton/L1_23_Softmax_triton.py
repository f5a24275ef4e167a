"""Softmax of long rows: one pass finds maximum and sum together, a second one writes; so a row is read only twice."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, N, BLOCK: tl.constexpr):
    """Softmax of one row."""
    row = tl.program_id(0).to(tl.int64) * N
    place = tl.arange(0, BLOCK)
    # Every lane has a maximum and a sum of its own, so that blocks need not wait for a reduction.
    # It starts lower than any value but -inf, which minus itself would be NaN.
    high = tl.full([BLOCK], -3.0e38, dtype=tl.float32)
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        value = tl.load(x + row + start + place, mask=start + place < N, other=float("-inf")).to(tl.float32)
        # Of old maximum and new value, the larger one has weight 1: one exponential serves for both cases.
        weight = tl.exp(-tl.abs(value - high))
        sums = tl.where(value > high, sums * weight + 1, sums + weight)
        high = tl.maximum(high, value)
    top = tl.max(high, axis=0)
    scale = 1 / tl.sum(sums * tl.exp(high - top), axis=0)
    blocks = tl.cdiv(N, BLOCK)
    # Backwards: the end of the row was read last and may still be in the cache.
    for block in range(blocks):
        start = (blocks - 1 - block) * BLOCK
        value = tl.load(x + row + start + place, mask=start + place < N).to(tl.float32)
        result = (tl.exp(value - top) * scale).to(out.dtype.element_ty)
        tl.store(out + row + start + place, result, mask=start + place < N)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        M, N = x.shape
        out = torch.empty_like(x)
        softmax[(M,)](x, out, N, min(8192, triton.next_power_of_2(N)), num_warps=16)
        return out
