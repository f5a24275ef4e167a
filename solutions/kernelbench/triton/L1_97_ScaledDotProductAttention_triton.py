"""Attention: scores never leave the chip for usual heads; very wide heads go by way of a score matrix.

A program of `flash` holds the outputs of its queries whole. Heads of 1024 values do not fit, and computing scores again
for each part of the output would cost several times as much as the score matrix, which is smaller than the heads.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

WIDEST = {4: 128, 2: 256}
"""By bytes per element: the widest head whose outputs fit into the registers of a program."""
LOG2_E = 1.4426950408889634

# By bytes per element. float32 goes through the tensor cores too: three products of halves of its values, which TF32
# can hold, are as precise as one of float32. Half types: tiles as wide as the tensor cores' instructions.
LAUNCH = {
    4: {"TILE_M": 128, "TILE_N": 128, "DEPTH": 32, "num_warps": 8, "num_stages": 3},
    2: {"TILE_M": 128, "TILE_N": 256, "DEPTH": 64, "num_warps": 8, "num_stages": 3},
}


@triton.jit
def flash(q, k, v, out, L, S, D, scale, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr):
    """Attention of ROWS queries of one head: maximum, sum and output are kept up to date, key block by key block."""
    tiles = tl.cdiv(L, ROWS)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    rows = (tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS))[:, None]
    keys = tl.arange(0, KEYS)
    depth = tl.arange(0, WIDTH)
    queries = head * L * D + rows.to(tl.int64) * D + depth[None, :]
    within = (rows < L) & (depth < D)[None, :]
    query = tl.load(q + queries, mask=within, other=0.0)
    columns = k + head * S * D + keys.to(tl.int64)[None, :] * D + depth[:, None]
    values = v + head * S * D + keys.to(tl.int64)[:, None] * D + depth[None, :]
    # Lower than any score but -inf, which minus itself would be NaN.
    high = tl.full([ROWS], -3.0e38, dtype=tl.float32)
    sums = tl.zeros([ROWS], dtype=tl.float32)
    total = tl.zeros([ROWS, WIDTH], dtype=tl.float32)
    for start in range(0, S, KEYS):
        inside = start + keys < S
        key = tl.load(columns, mask=inside[None, :] & (depth < D)[:, None], other=0.0)
        scores = tl.dot(query, key, input_precision="tf32x3") * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        higher = tl.maximum(high, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        fade = tl.exp2(high - higher)
        sums = sums * fade + tl.sum(weights, axis=1)
        value = tl.load(values, mask=inside[:, None] & (depth < D)[None, :], other=0.0)
        total = tl.dot(weights.to(value.dtype), value, total * fade[:, None], input_precision="tf32x3")
        high = higher
        columns += KEYS * D
        values += KEYS * D
    tl.store(out + queries, (total / sums[:, None]).to(out.dtype.element_ty), mask=within)


@triton.jit
def score(q, k, scores, spread, L, S, D, scale, TILE_M: tl.constexpr, TILE_N: tl.constexpr, DEPTH: tl.constexpr):
    """One tile of one head's scores, and the logarithm of each row's sum of powers of two."""
    high, across = tl.cdiv(L, TILE_M), tl.cdiv(S, TILE_N)
    head = (tl.program_id(0) // (high * across)).to(tl.int64)
    tile = tl.program_id(0) % (high * across)
    rows = (tile % high * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    cols = (tile // high * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)[None, :]
    inner = tl.arange(0, DEPTH)
    left = q + head * L * D + rows * D + inner[None, :]
    right = k + head * S * D + cols * D + inner[:, None]
    # In float32 a long sum by way of short ones: exponentials make its rounding errors matter.
    SHORT: tl.constexpr = 128
    total = tl.zeros([TILE_M, TILE_N], dtype=tl.float32)
    part = tl.zeros([TILE_M, TILE_N], dtype=tl.float32)
    for d in range(0, D, DEPTH):
        inside = d + inner < D
        query = tl.load(left, mask=(rows < L) & inside[None, :], other=0.0)
        key = tl.load(right, mask=inside[:, None] & (cols < S), other=0.0)
        if query.dtype == tl.float32 and d % SHORT == 0:
            total += part
            part = tl.zeros([TILE_M, TILE_N], dtype=tl.float32)
        part = tl.dot(query, key, part, input_precision="tf32x3")
        left += DEPTH
        right += DEPTH
    total = tl.where(cols < S, (total + part) * scale, float("-inf"))
    tl.store(scores + head * L * S + rows * S + cols, total, mask=(rows < L) & (cols < S))
    largest = tl.max(total, axis=1, keep_dims=True)
    logarithm = largest + tl.log2(tl.sum(tl.exp2(total - largest), axis=1, keep_dims=True))
    tl.store(spread + (head * across + tile // high) * L + rows, logarithm, mask=rows < L)


@triton.jit
def average(scores, spread, v, out, L, S, D, TILE_M: tl.constexpr, TILE_N: tl.constexpr, DEPTH: tl.constexpr):
    """One tile of one head's softmax(scores) @ V."""
    high, across = tl.cdiv(L, TILE_M), tl.cdiv(D, TILE_N)
    head = (tl.program_id(0) // (high * across)).to(tl.int64)
    tile = tl.program_id(0) % (high * across)
    rows = (tile % high * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    cols = (tile // high * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)[None, :]
    # log2(sum of powers of two) of the whole row, from those of the tiles of scores.
    parts = tl.cdiv(S, TILE_N)
    logarithm = tl.load(spread + head * parts * L + rows, mask=rows < L, other=0.0)
    for part in range(1, parts):
        other = tl.load(spread + (head * parts + part) * L + rows, mask=rows < L, other=0.0)
        logarithm = tl.maximum(logarithm, other) + tl.log2(1 + tl.exp2(-tl.abs(logarithm - other)))

    keys = tl.arange(0, DEPTH)
    left = scores + head * L * S + rows * S + keys[None, :]
    right = v + head * S * D + keys.to(tl.int64)[:, None] * D + cols
    # Square in float32.
    total = tl.zeros([TILE_M, TILE_N], dtype=tl.float32)
    for start in range(0, S, DEPTH):
        inside = start + keys < S
        logit = tl.load(left, mask=(rows < L) & inside[None, :], other=float("-inf"))
        value = tl.load(right, mask=inside[:, None] & (cols < D), other=0.0)
        weights = tl.exp2(logit - logarithm)
        if value.dtype == tl.float32:
            # As the transposed product, since tensor cores take the right operand along its depth only.
            total = tl.dot(tl.trans(value), tl.trans(weights), total, input_precision="tf32x3")
        else:
            total = tl.dot(weights.to(value.dtype), value, total)
        left += DEPTH
        right += DEPTH * D
    if v.dtype.element_ty == tl.float32:
        total = tl.trans(total)
    tl.store(out + head * L * D + rows * D + cols, total.to(out.dtype.element_ty), mask=(rows < L) & (cols < D))


class ModelNew(nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
        (L, D), S = Q.shape[-2:], K.shape[-2]
        heads = Q[..., 0, 0].numel()
        out = torch.empty_like(Q)
        # Powers of two are what the hardware computes.
        scale = LOG2_E / D**0.5
        width = max(16, triton.next_power_of_2(D))
        if width <= WIDEST[Q.dtype.itemsize]:
            rows, keys = (128, 64) if Q.dtype.itemsize == 2 and width <= 128 else (64, 32)
            grid = (heads * triton.cdiv(L, rows),)
            flash[grid](Q, K, V, out, L, S, D, scale, rows, keys, width, num_warps=8, num_stages=2)
            return out
        launch = LAUNCH[Q.dtype.itemsize]
        high, parts = triton.cdiv(L, launch["TILE_M"]), triton.cdiv(S, launch["TILE_N"])
        scores = Q.new_empty(heads, L, S, dtype=torch.float32)
        spread = Q.new_empty(heads, parts, L, dtype=torch.float32)
        score[(heads * high * parts,)](Q, K, scores, spread, L, S, D, scale, **launch)
        average[(heads * high * triton.cdiv(D, launch["TILE_N"]),)](scores, spread, V, out, L, S, D, **launch)
        return out
