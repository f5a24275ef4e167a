"""Reduce-scatter, average and RMSNorm in one kernel: rows are pushed to their owner, a warp of which sums and norms."""

import torch
import torch.distributed as dist

from pkb.cuda_lib import cdiv, compile, exchange, whole_packs

THREADS = 512

SOURCE = r"""
using namespace pkb;

constexpr int PACK = Pack<scalar>::SIZE;

// Leaves the mean over the ranks in `out`, rounded as the reference rounds: the sum, then the mean.
__device__ float mean_row(const scalar* const (&copies)[WORLD], i64 place, scalar* out, int cols, bool in_packs) {
    float squares = 0.0f;
    along_row<2, scalar>(
        cols, [&](i64 c) { return sum_parts(copies, place + c, cols - c, in_packs); },
        [&](i64 c, Pack<scalar> sum) {
            float wide[PACK];
            widen(sum, wide);
#pragma unroll
            for (int i = 0; i < PACK; i++) {
                wide[i] = to_float(from_float<scalar>(wide[i] / WORLD));
                squares += wide[i] * wide[i];
            }
            store_part(out + c, narrow<scalar>(wide), cols - c, in_packs);
        });
    return warp_sum(squares);
}

// Each lane finds in `out` what it has put there itself.
__device__ void scale_row(const scalar* gamma, scalar* out, float factor, int cols, bool in_packs) {
    struct Pair {
        Pack<scalar> value, weight;
    };
    along_row<4, scalar>(
        cols,
        [&](i64 c) {
            return Pair{load_part(out + c, cols - c, in_packs), load_part(gamma + c, cols - c, in_packs)};
        },
        [&](i64 c, Pair pair) {
            float wide[PACK], weights[PACK];
            widen(pair.value, wide);
            widen(pair.weight, weights);
#pragma unroll
            for (int i = 0; i < PACK; i++) wide[i] = wide[i] * factor * weights[i];
            store_part(out + c, narrow<scalar>(wide), cols - c, in_packs);
        });
}

extern "C" __global__ void __launch_bounds__(512, 1)
reduce_scatter_rms_norm(const scalar* x, const scalar* gamma, scalar* out, Table buffers, Table signals, i64 offset,
                        i64 slot, int rows, int cols, float eps, int rank) {
    const i64 chunk = i64(rows) * cols;
    const auto [begin, end] = share(rows, 1);
    for (int step = 1; step < WORLD; step++) {
        const int target = (rank + step) % WORLD;
        scalar* to = peer<scalar>(buffers, target) + offset + rank * slot;
        copy(to + begin * cols, x + target * chunk + begin * cols, (end - begin) * cols);
    }
    rank_barrier(signals, rank, WORLD);
    const scalar* own = peer<scalar>(buffers, rank) + offset;
    const scalar* copies[WORLD];
    for (int r = 0; r < WORLD; r++) copies[r] = r == rank ? x + rank * chunk : own + r * slot;
    const bool in_packs = all_aligned(out, copies) && aligned(gamma) && cols % PACK == 0;
    for (i64 row = begin + threadIdx.x / 32; row < end; row += blockDim.x / 32) {
        const float squares = mean_row(copies, row * cols, out + row * cols, cols, in_packs);
        scale_row(gamma, out + row * cols, rsqrtf(squares / cols + eps), cols, in_packs);
    }
}
"""


def solution(rs_input_1d: torch.Tensor, gamma: torch.Tensor, eps: float) -> torch.Tensor:
    x, gamma = rs_input_1d.contiguous(), gamma.contiguous()
    world, cols = dist.get_world_size(), gamma.numel()
    rows = x.numel() // (world * cols)
    out = x.new_empty(rows, cols)
    slot = whole_packs(rows * cols, x.dtype)
    ex = exchange(world * slot, x.dtype, x.device)
    kernel = compile(SOURCE, "reduce_scatter_rms_norm", dtype=x.dtype, options=(f"-DWORLD={world}",))
    grid = ex.programs(cdiv(rows, THREADS // 32))
    sizes = slot, rows, cols, float(eps), ex.rank
    kernel(grid, THREADS, x, gamma, out, ex.buffers, ex.signals, ex.next_offset(), *sizes)
    return out
