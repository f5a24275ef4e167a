"""Sum over one dimension: neighbouring columns are read together, and every element only once."""

import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_columns(x, out, LENGTH, INNER, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Sums of COLS columns of one [LENGTH, INNER] matrix."""
    tiles = tl.cdiv(INNER, COLS)
    matrix = (tl.program_id(0) // tiles).to(tl.int64)
    rows = tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(0) % tiles * COLS + tl.arange(0, COLS)
    stride = tl.cast(INNER, tl.int64)
    place = x + matrix * LENGTH * stride + rows * stride + cols[None, :]
    total = tl.zeros([ROWS, COLS], dtype=tl.float32)
    for row in range(0, LENGTH, ROWS):
        total += tl.load(place, mask=(row + rows < LENGTH) & (cols < INNER)[None, :], other=0.0).to(tl.float32)
        place += ROWS * stride
    tl.store(out + matrix * stride + cols, tl.sum(total, axis=0).to(out.dtype.element_ty), mask=cols < INNER)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        dim = self.dim % x.ndim
        outer, length, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
        out = x.new_empty(*x.shape[:dim], 1, *x.shape[dim + 1 :])
        cols = min(128, triton.next_power_of_2(inner))
        rows = min(8192 // cols, triton.next_power_of_2(length))
        sum_columns[(outer * triton.cdiv(inner, cols),)](x, out, length, inner, rows, cols, num_warps=8)
        return out
