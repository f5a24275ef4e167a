import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def add(a, b, out, count, BLOCK: tl.constexpr):
    """Add BLOCK elements."""
    # There may be more elements than an int32 can count.
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    total = tl.load(a + place, mask=inside) + tl.load(b + place, mask=inside)
    tl.store(out + place, total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), BLOCK),)](a, b, out, a.numel(), BLOCK, num_warps=8)
        return out
