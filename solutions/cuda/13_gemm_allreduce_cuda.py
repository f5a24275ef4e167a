"""GEMM + all-reduce in one kernel: each rank sums some rows of every tile; the others push them to it and pull."""

import torch
import torch.distributed as dist

from pkb.cuda_lib import GEMM_SHARED, GEMM_THREADS, GEMM_TILE, cdiv, compile, exchange

SOURCE = r"""
using namespace pkb;
using G = Gemm<scalar>;

// Rows of a tile that one rank sums.
constexpr int SEGMENT = (G::ROWS + WORLD - 1) / WORLD;

extern "C" __global__ void __launch_bounds__(256, 2)
gemm_all_reduce(const scalar* a, const scalar* b, scalar* out, Table buffers, Table signals, i64 offset, int rows,
                int cols, int depth, int rank) {
    const Matrix<scalar> left = {a, depth, rows, depth}, right = {b, cols, depth, cols};
    const Output<scalar> result = {out, rows, cols};
    const Tiling<scalar> tiles(rows, cols);
    // Where `owner` keeps the segment of a tile that came from `source`, and in its own place the sum.
    auto slot = [&](int owner, int source, int tile) {
        return peer<scalar>(buffers, owner) + offset + (i64(source) * tiles.count + tile) * (SEGMENT * G::COLS);
    };
    for (int tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {
        const scalar* product = gemm_tile(left, right, tiles.row(tile), tiles.col(tile));
        // Every rank begins with the rows of another.
        move_tile<scalar>(
            (rank + 1) * SEGMENT, [&](int r, int c) { return load_shared_pack(product + r * G::TILE_STRIDE + c); },
            [&](int r, int c, Pack<scalar> pack) {
                store_pack(slot(r / SEGMENT, rank, tile) + r % SEGMENT * G::COLS + c, pack);
            });
    }
    rank_barrier(signals, rank, WORLD);
    for (int tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {
        const scalar* copies[WORLD];
        for (int r = 0; r < WORLD; r++) copies[r] = slot(rank, r, tile);
        sum(slot(rank, rank, tile), copies, SEGMENT * G::COLS);
    }
    rank_barrier(signals, rank, WORLD);
    for (int tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {
        move_tile<scalar>(
            (rank + 1) * SEGMENT,
            [&](int r, int c) {
                const int owner = r / SEGMENT;
                return load_pack(slot(owner, owner, tile) + r % SEGMENT * G::COLS + c);
            },
            [&](int r, int c, Pack<scalar> pack) { result.store(tiles.row(tile) + r, tiles.col(tile) + c, pack); });
    }
}
"""


def solution(A_local: torch.Tensor, B_local: torch.Tensor) -> torch.Tensor:
    A, B = A_local.contiguous(), B_local.contiguous()
    (rows, depth), cols, world = A.shape, B.shape[1], dist.get_world_size()
    out = A.new_empty(rows, cols)
    tiles = cdiv(rows, GEMM_TILE) * cdiv(cols, GEMM_TILE)
    ex = exchange(world * tiles * cdiv(GEMM_TILE, world) * GEMM_TILE, A.dtype, A.device)
    kernel = compile(SOURCE, "gemm_all_reduce", dtype=A.dtype, options=(f"-DWORLD={world}",))
    grid = ex.programs(tiles, per_sm=2)
    sizes = rows, cols, depth, ex.rank
    kernel(grid, GEMM_THREADS, A, B, out, ex.buffers, ex.signals, ex.next_offset(), *sizes, shared=GEMM_SHARED)
    return out
