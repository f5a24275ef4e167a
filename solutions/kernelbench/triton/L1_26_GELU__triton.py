"""Exact GELU: one read and one write of every element; the error function hides behind them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def gelu(x, out, count, BLOCK: tl.constexpr):
    """GELU of BLOCK elements."""
    # There may be more elements than an int32 can count.
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count).to(tl.float32)
    result = 0.5 * value * (1 + tl.erf(value * 0.7071067811865476))
    tl.store(out + place, result.to(out.dtype.element_ty), mask=place < count)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        gelu[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK, num_warps=8)
        return out
