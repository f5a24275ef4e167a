"""Sigmoid: one read and one write of every element; the exponential hides behind them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK = 512


@triton.jit
def sigmoid(x, out, count, BLOCK: tl.constexpr):
    """Sigmoid of BLOCK elements."""
    # There may be more elements than an int32 can count.
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count).to(tl.float32)
    result = tl.sigmoid(value)
    tl.store(out + place, result.to(out.dtype.element_ty), mask=place < count)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        sigmoid[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK, num_warps=4)
        return out
