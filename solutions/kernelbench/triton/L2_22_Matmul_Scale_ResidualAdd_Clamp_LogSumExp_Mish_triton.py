"""Linear layer, scale and clamp, of which only a maximum and a sum per row and tile are stored.

The product itself, as large as x, never leaves the chip; a second kernel makes the logsumexp of what is left.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

# By bytes per element. float32 goes through the tensor cores too: three products of halves of its values, which TF32
# can hold, are as precise as one of float32. Half types: tiles as wide as the tensor cores' instructions.
LAUNCH = {
    4: {"TILE_M": 128, "TILE_N": 128, "DEPTH": 32, "num_warps": 8, "num_stages": 3},
    2: {"TILE_M": 128, "TILE_N": 256, "DEPTH": 64, "num_warps": 8, "num_stages": 3},
}


@triton.jit
def linear_tile(x, weight, bias, rows, cols, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, DEPTH: tl.constexpr):
    """The tile of x @ weight.T + bias in these rows and columns, in float32."""
    inner = tl.arange(0, DEPTH)
    left = x + rows * K + inner[None, :]
    right = weight + cols * K + inner[:, None]
    total = tl.zeros([TILE_M, TILE_N], dtype=tl.float32)
    for k in range(0, K, DEPTH):
        inside = k + inner < K
        a = tl.load(left, mask=(rows < M) & inside[None, :], other=0.0)
        b = tl.load(right, mask=inside[:, None] & (cols < N), other=0.0)
        total = tl.dot(a, b, total, input_precision="tf32x3")
        left += DEPTH
        right += DEPTH
    return total + tl.load(bias + cols, mask=cols < N, other=0.0).to(tl.float32)


@triton.jit
def summarise(
    x,
    weight,
    bias,
    highs,
    sums,
    M,
    N,
    K,
    factor,
    lowest,
    highest,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Each row's largest value in one tile of clamp((x @ weight.T + bias) * factor), and its sum of exponentials."""
    high, across = tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N)
    tile = tl.program_id(0)
    # In bands eight tiles high, column by column: programs that run together share rows of x and of the weight.
    row, col = tl.swizzle2d(tile // across, tile % across, high, across, 8)
    rows = (row * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    cols = (col * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)[None, :]
    value = linear_tile(x, weight, bias, rows, cols, M, N, K, TILE_M, TILE_N, DEPTH)
    scaled = value * factor
    # Unlike minimum and maximum, comparisons let NaN through, as torch does.
    scaled = tl.where(scaled < lowest, lowest, scaled)
    scaled = tl.where(scaled > highest, highest, scaled)
    scaled = tl.where(cols < N, scaled, float("-inf"))
    largest = tl.max(scaled, axis=1, keep_dims=True)
    tl.store(highs + col * M + rows, largest, mask=rows < M)
    tl.store(sums + col * M + rows, tl.sum(tl.exp(scaled - largest), axis=1, keep_dims=True), mask=rows < M)


@triton.jit
def combine(highs, sums, out, M, PARTS, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """l * mish(l) of ROWS rows, where l is the logsumexp of all parts of a row."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[None, :]
    parts = tl.arange(0, WIDTH)[:, None]
    inside = (rows < M) & (parts < PARTS)
    high = tl.load(highs + parts * M + rows, mask=inside, other=-3.0e38)
    # What is no part has weight exp(-3e38 - top) = 0.
    total = tl.load(sums + parts * M + rows, mask=inside, other=1.0)
    top = tl.max(high, axis=0, keep_dims=True)
    value = top + tl.log(tl.sum(total * tl.exp(high - top), axis=0, keep_dims=True))
    # tanh(log(1 + e)) is a ratio of polynomials of e; beyond 20 it is 1, and e would soon overflow.
    e = tl.exp(tl.minimum(value, 20.0))
    mish = value * (e * (e + 2) / (e * (e + 2) + 2))
    tl.store(out + rows, (value * mish).to(out.dtype.element_ty), mask=rows < M)


class ModelNew(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, scale_factor: float, clamp_min: float, clamp_max: float):
        super().__init__()
        self.matmul = nn.Linear(input_size, hidden_size)
        self.scale_factor = scale_factor
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, weight, bias = x.contiguous(), self.matmul.weight.contiguous(), self.matmul.bias.contiguous()
        M, (N, K) = x.shape[0], weight.shape
        launch = LAUNCH[x.dtype.itemsize]
        high, parts = triton.cdiv(M, launch["TILE_M"]), triton.cdiv(N, launch["TILE_N"])
        highs, sums = x.new_empty(2, parts, M, dtype=torch.float32)
        out = x.new_empty(M, 1)
        # The reference adds its scaled product to itself.
        factor = 2 * self.scale_factor
        summarise[(high * parts,)](
            x, weight, bias, highs, sums, M, N, K, factor, self.clamp_min, self.clamp_max, **launch
        )
        combine[(triton.cdiv(M, 16),)](highs, sums, out, M, parts, 16, triton.next_power_of_2(parts))
        return out
