"""Mean squared error: both inputs are read once; every program leaves one sum, and one program adds those up.

No atomics: the result is the same every time.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK = 4096
STEPS = 16


@triton.jit
def sum_of_squares(x, y, partial, count, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """The sum of (x - y)**2 over STEPS blocks."""
    place = tl.program_id(0).to(tl.int64) * (STEPS * BLOCK) + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for _ in range(STEPS):
        a = tl.load(x + place, mask=place < count, other=0.0).to(tl.float32)
        b = tl.load(y + place, mask=place < count, other=0.0).to(tl.float32)
        total += (a - b) * (a - b)
        place += BLOCK
    tl.store(partial + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def mean(partial, out, parts, count, BLOCK: tl.constexpr):
    """All partial sums together, divided by the count."""
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, parts, BLOCK):
        place = start + tl.arange(0, BLOCK)
        total += tl.load(partial + place, mask=place < parts, other=0.0)
    tl.store(out, (tl.sum(total, axis=0) / count).to(out.dtype.element_ty))


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x, y = predictions.contiguous(), targets.contiguous()
        parts = triton.cdiv(x.numel(), STEPS * BLOCK)
        partial = x.new_empty(parts, dtype=torch.float32)
        out = x.new_empty(())
        sum_of_squares[(parts,)](x, y, partial, x.numel(), BLOCK, STEPS, num_warps=8)
        mean[(1,)](partial, out, parts, x.numel(), BLOCK, num_warps=8)
        return out
