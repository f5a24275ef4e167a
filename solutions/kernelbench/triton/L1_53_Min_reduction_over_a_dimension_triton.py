"""Minimum over one dimension: neighbouring columns are read together, and every element only once."""

import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def min_columns(x, out, LENGTH, INNER, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Minima of COLS columns of one [LENGTH, INNER] matrix."""
    tiles = tl.cdiv(INNER, COLS)
    matrix = (tl.program_id(0) // tiles).to(tl.int64)
    rows = tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(0) % tiles * COLS + tl.arange(0, COLS)
    stride = tl.cast(INNER, tl.int64)
    place = x + matrix * LENGTH * stride + rows * stride + cols[None, :]
    low = tl.full([ROWS, COLS], float("inf"), dtype=tl.float32)
    for row in range(0, LENGTH, ROWS):
        inside = (row + rows < LENGTH) & (cols < INNER)[None, :]
        value = tl.load(place, mask=inside, other=float("inf")).to(tl.float32)
        low = tl.minimum(low, value, propagate_nan=tl.PropagateNan.ALL)
        place += ROWS * stride
    # The reduction leaves out NaN, which torch does not.
    lost = tl.max((low != low).to(tl.int32), axis=0) > 0
    least = tl.where(lost, float("nan"), tl.min(low, axis=0))
    tl.store(out + matrix * stride + cols, least.to(out.dtype.element_ty), mask=cols < INNER)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        dim = self.dim % x.ndim
        outer, length, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
        out = x.new_empty(*x.shape[:dim], *x.shape[dim + 1 :])
        cols = min(128, triton.next_power_of_2(inner))
        rows = min(8192 // cols, triton.next_power_of_2(length))
        min_columns[(outer * triton.cdiv(inner, cols),)](x, out, length, inner, rows, cols, num_warps=8)
        return out
