"""RMSNorm over a sharded hidden dim in one kernel, a warp to a row: only the sums of squares cross, in float32."""

import torch
import torch.distributed as dist

from pkb.cuda_lib import cdiv, compile, exchange

THREADS = 512

SOURCE = r"""
using namespace pkb;

constexpr int PACK = Pack<scalar>::SIZE;

__device__ float sum_of_squares(const scalar* row, int cols, bool in_packs) {
    float squares = 0.0f;
    along_row<4, scalar>(
        cols, [&](i64 c) { return load_part(row + c, cols - c, in_packs); },
        [&](i64, Pack<scalar> pack) {
            float wide[PACK];
            widen(pack, wide);
#pragma unroll
            for (int i = 0; i < PACK; i++) squares += wide[i] * wide[i];
        });
    return warp_sum(squares);
}

__device__ void scale_row(const scalar* row, const scalar* weight, scalar* out, float factor, int cols, bool in_packs) {
    struct Pair {
        Pack<scalar> value, weight;
    };
    along_row<4, scalar>(
        cols,
        [&](i64 c) {
            return Pair{load_part(row + c, cols - c, in_packs), load_part(weight + c, cols - c, in_packs)};
        },
        [&](i64 c, Pair pair) {
            float wide[PACK], weights[PACK];
            widen(pair.value, wide);
            widen(pair.weight, weights);
            // The reference rounds before it multiplies by the weight.
#pragma unroll
            for (int i = 0; i < PACK; i++) wide[i] = to_float(from_float<scalar>(wide[i] * factor)) * weights[i];
            store_part(out + c, narrow<scalar>(wide), cols - c, in_packs);
        });
}

extern "C" __global__ void __launch_bounds__(512, 1)
rms_norm(const scalar* x, const scalar* weight, scalar* out, Table buffers, Table signals, i64 offset, int rows,
         int cols, float eps, int rank) {
    const bool in_packs = aligned(x, weight, out) && cols % PACK == 0;
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const auto [begin, end] = share(rows, 1);
    const i64 first = begin + threadIdx.x / 32, mine = (end - first + warps - 1) / warps;
    for (i64 k = 0; k < mine; k++) {
        const i64 row = first + k * warps;
        const float squares = sum_of_squares(x + row * cols, cols, in_packs);
        if (lane < WORLD) peer<float>(buffers, lane)[offset + i64(rank) * rows + row] = squares;
    }
    rank_barrier(signals, rank, WORLD);
    const float* all = peer<float>(buffers, rank) + offset;
    // Backwards: the rows read last may still be in the cache.
    for (i64 k = mine - 1; k >= 0; k--) {
        const i64 row = first + k * warps;
        float squares = 0.0f;
        for (int r = 0; r < WORLD; r++) squares += all[i64(r) * rows + row];
        const float factor = rsqrtf(squares / (float(cols) * WORLD) + eps);
        scale_row(x + row * cols, weight, out + row * cols, factor, cols, in_packs);
    }
}
"""


def solution(local_hidden_states: torch.Tensor, local_weight: torch.Tensor, variance_epsilon: float) -> torch.Tensor:
    x, weight = local_hidden_states.contiguous(), local_weight.contiguous()
    cols, world = x.shape[-1], dist.get_world_size()
    rows = x.numel() // cols
    out = torch.empty_like(x)
    ex = exchange(world * rows, torch.float32, x.device)
    kernel = compile(SOURCE, "rms_norm", dtype=x.dtype, options=(f"-DWORLD={world}",))
    grid = ex.programs(cdiv(rows, THREADS // 32))
    sizes = rows, cols, float(variance_epsilon), ex.rank
    kernel(grid, THREADS, x, weight, out, ex.buffers, ex.signals, ex.next_offset(), *sizes)
    return out
