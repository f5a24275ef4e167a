"""Vocabulary-parallel cross entropy in one kernel: one pass over the logits, then 16 bytes per token and rank cross."""

import torch
import torch.distributed as dist

from pkb.cuda_lib import cdiv, compile, exchange

THREADS = 512

SOURCE = r"""
using namespace pkb;

constexpr int PACK = Pack<scalar>::SIZE;

__device__ float infinity() { return __uint_as_float(0x7f800000u); }

// The largest logit, and the sum of exp(logit - largest). Minus infinity as the largest stands for no logits at all.
struct Softmax {
    float largest, total;

    __device__ void raise(float bound) {
        if (bound > largest) {
            total *= expf(largest - bound);
            largest = bound;
        }
    }

    __device__ void add(float logit) { total += expf(logit - (largest == -infinity() ? 0.0f : largest)); }
};

// A warp's reading of a token's logits.
__device__ Softmax softmax_of(const scalar* logits, int ids, bool in_packs) {
    Softmax seen = {-infinity(), 0.0f};
    along_row<4, scalar>(
        ids, [&](i64 c) { return load_part(logits + c, ids - c, in_packs); },
        [&](i64 c, Pack<scalar> pack) {
            float wide[PACK], largest = -infinity();
            widen(pack, wide);
#pragma unroll
            for (int i = 0; i < PACK; i++) largest = fmaxf(largest, c + i < ids ? wide[i] : largest);
            seen.raise(largest);
#pragma unroll
            for (int i = 0; i < PACK; i++) {
                if (c + i < ids) seen.add(wide[i]);
            }
        });
    seen.raise(warp_max(seen.largest));
    seen.total = warp_sum(seen.total);
    return seen;
}

extern "C" __global__ void __launch_bounds__(512, 1)
cross_entropy(const scalar* logits, const i64* targets, scalar* out, Table buffers, Table signals, i64 offset,
              int tokens, int ids, int rank) {
    const bool in_packs = aligned(logits) && ids % PACK == 0;
    const int lane = threadIdx.x % 32;
    const auto [begin, end] = share(tokens, 1);
    // A rank's table of what all ranks have found about each token.
    auto table = [&](int r) { return reinterpret_cast<float4*>(peer<float>(buffers, r) + offset); };
    for (i64 token = begin + threadIdx.x / 32; token < end; token += blockDim.x / 32) {
        const scalar* row = logits + token * ids;
        const Softmax seen = softmax_of(row, ids, in_packs);
        const i64 place = targets[token] - i64(rank) * ids;
        const bool own = place >= 0 && place < ids;
        const float4 found = {seen.largest, seen.total, own ? to_float(row[place]) : 0.0f, own ? 1.0f : 0.0f};
        if (lane < WORLD) table(lane)[i64(rank) * tokens + token] = found;
    }
    rank_barrier(signals, rank, WORLD);
    const float4* all = table(rank);
    for (i64 token = begin + threadIdx.x; token < end; token += blockDim.x) {
        float4 found[WORLD];
        float largest = -infinity(), total = 0.0f, shifted = 0.0f;
#pragma unroll
        for (int r = 0; r < WORLD; r++) {
            found[r] = all[i64(r) * tokens + token];
            largest = fmaxf(largest, found[r].x);
        }
#pragma unroll
        for (int r = 0; r < WORLD; r++) {
            total += found[r].y * expf(found[r].x - largest);
            if (found[r].w != 0.0f) shifted = found[r].z - largest;
        }
        out[token] = from_float<scalar>(logf(total) - shifted);
    }
}
"""


def solution(
    vocab_parallel_logits: torch.Tensor, target: torch.Tensor, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    logits, target = vocab_parallel_logits.contiguous(), target.contiguous()
    ids, tokens, world = logits.shape[-1], target.numel(), dist.get_world_size(group)
    out = logits.new_empty(target.shape)
    ex = exchange(world * tokens * 4, torch.float32, logits.device)
    kernel = compile(SOURCE, "cross_entropy", dtype=logits.dtype, options=(f"-DWORLD={world}",))
    grid = ex.programs(cdiv(tokens, THREADS // 32))
    sizes = tokens, ids, ex.rank
    kernel(grid, THREADS, logits, target, out, ex.buffers, ex.signals, ex.next_offset(), *sizes)
    return out
