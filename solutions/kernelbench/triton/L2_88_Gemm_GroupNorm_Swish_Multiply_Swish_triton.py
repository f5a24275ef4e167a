"""Linear layer, group norm, swish, factor and swish in one kernel: a tile consists of whole groups.

Groups whose size is no power of two are padded in the tile.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

# By bytes per element. float32 goes through the tensor cores too: three products of halves of its values, which TF32
# can hold, are as precise as one of float32. Half types: the norm needs registers
# too, so tiles are narrower than the tensor cores' instructions could be.
LAUNCH = {
    4: {"TILE_M": 128, "TILE_N": 128, "DEPTH": 32, "num_warps": 8, "num_stages": 3},
    2: {"TILE_M": 128, "TILE_N": 128, "DEPTH": 64, "num_warps": 8, "num_stages": 4},
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
def linear_group_norm_swish(
    x,
    weight,
    bias,
    norm_weight,
    norm_bias,
    factor,
    out,
    M,
    N,
    K,
    SIZE,
    eps,
    WIDTH: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """One tile of swish(swish(group_norm(x @ weight.T + bias)) * factor)."""
    GROUPS: tl.constexpr = TILE_N // WIDTH
    high, across = tl.cdiv(M, TILE_M), tl.cdiv(N, GROUPS * SIZE)
    tile = tl.program_id(0)
    # In bands eight tiles high, column by column: programs that run together share rows of x and of the weight.
    row, col = tl.swizzle2d(tile // across, tile % across, high, across, 8)
    rows = (row * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    lane = tl.arange(0, TILE_N)
    # Padding is what lies beyond all columns.
    feature = (col * GROUPS + lane // WIDTH) * SIZE + lane % WIDTH
    cols = tl.where(lane % WIDTH < SIZE, feature, N).to(tl.int64)[None, :]
    value = linear_tile(x, weight, bias, rows, cols, M, N, K, TILE_M, TILE_N, DEPTH)

    # Padding is zero: it counts for nothing in a sum, and its distance from the mean must not.
    mean = tl.sum(tl.reshape(value, [TILE_M, GROUPS, WIDTH]), axis=2, keep_dims=True) / SIZE
    mean = tl.reshape(tl.broadcast_to(mean, [TILE_M, GROUPS, WIDTH]), [TILE_M, TILE_N])
    distance = tl.where(cols < N, value - mean, 0.0)
    squares = tl.reshape(distance * distance, [TILE_M, GROUPS, WIDTH])
    scale = tl.rsqrt(tl.sum(squares, axis=2, keep_dims=True) / SIZE + eps)
    scale = tl.reshape(tl.broadcast_to(scale, [TILE_M, GROUPS, WIDTH]), [TILE_M, TILE_N])
    gain = tl.load(norm_weight + cols, mask=cols < N, other=0.0).to(tl.float32)
    shift = tl.load(norm_bias + cols, mask=cols < N, other=0.0).to(tl.float32)
    normed = distance * scale * gain + shift
    scaled = normed * tl.sigmoid(normed) * tl.load(factor + cols, mask=cols < N, other=0.0).to(tl.float32)
    result = scaled * tl.sigmoid(scaled)
    tl.store(out + rows * N + cols, result.to(out.dtype.element_ty), mask=(rows < M) & (cols < N))


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, num_groups: int, multiply_weight_shape: tuple[int, ...]):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.multiply_weight = nn.Parameter(torch.randn(multiply_weight_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, weight, bias = x.contiguous(), self.gemm.weight.contiguous(), self.gemm.bias.contiguous()
        norm, factor = self.group_norm, self.multiply_weight.contiguous()
        M, (N, K) = x.shape[0], weight.shape
        size = N // norm.num_groups
        width = triton.next_power_of_2(size)
        assert width <= 512, "a group must fit into a tile: norm larger ones in a kernel of their own"
        launch = dict(LAUNCH[x.dtype.itemsize])
        if width > launch["TILE_N"]:
            # A wider tile has fewer rows.
            launch |= {"TILE_M": 32, "TILE_N": width, "DEPTH": 16}
        tiles = triton.cdiv(M, launch["TILE_M"]) * triton.cdiv(norm.num_groups, launch["TILE_N"] // width)
        out = x.new_empty(M, N)
        linear_group_norm_swish[(tiles,)](
            x,
            weight,
            bias,
            norm.weight.contiguous(),
            norm.bias.contiguous(),
            factor,
            out,
            M,
            N,
            K,
            size,
            norm.eps,
            width,
            **launch,
        )
        return out
