"""GEMM + reduce-scatter in one kernel: products go straight into the slot of the rank that will sum them."""

import torch
import torch.distributed as dist

from pkb.cuda_lib import GEMM_SHARED, GEMM_THREADS, GEMM_TILE, cdiv, compile, exchange

SOURCE = r"""
using namespace pkb;
using G = Gemm<scalar>;

// `rows` is one rank's share of the output. Item i of the work is tile i % tiles of the share of rank i / tiles;
// the block that multiplies an item is the one that sums it on the rank whose share it is.
extern "C" __global__ void __launch_bounds__(256, 2)
gemm_reduce_scatter(const scalar* a, const scalar* b, scalar* out, Table buffers, Table signals, i64 offset, int rows,
                    int cols, int depth, int rank) {
    const Matrix<scalar> right = {b, cols, depth, cols};
    const Output<scalar> result = {out, rows, cols};
    const Tiling<scalar> tiles(rows, cols);
    const int block = blockIdx.x, blocks = gridDim.x;
    auto slot = [&](int owner, int source, int tile) {
        return peer<scalar>(buffers, owner) + offset + (i64(source) * tiles.count + tile) * (G::ROWS * G::COLS);
    };
    const int mine = (WORLD * tiles.count - 1 - block) / blocks + 1;
    for (int k = 0; k < mine; k++) {
        // Every rank begins with the share of another, and ends with its own.
        const int turn = (k + mine * (rank + 1) / WORLD) % mine;
        const int item = block + turn * blocks, target = item / tiles.count, tile = item % tiles.count;
        const Matrix<scalar> left = {a + i64(target) * rows * depth, depth, rows, depth};
        const scalar* product = gemm_tile(left, right, tiles.row(tile), tiles.col(tile));
        scalar* to = slot(target, rank, tile);
        move_tile<scalar>(
            0, [&](int r, int c) { return load_shared_pack(product + r * G::TILE_STRIDE + c); },
            [&](int r, int c, Pack<scalar> pack) { store_pack(to + r * G::COLS + c, pack); });
    }
    rank_barrier(signals, rank, WORLD);
    // The first of this block's items that lies in the own share.
    const int first = ((block - rank * tiles.count) % blocks + blocks) % blocks;
    for (int tile = first; tile < tiles.count; tile += blocks) {
        const scalar* copies[WORLD];
        for (int r = 0; r < WORLD; r++) copies[r] = slot(rank, r, tile);
        move_tile<scalar>(
            0, [&](int r, int c) { return sum_packs(copies, r * G::COLS + c); },
            [&](int r, int c, Pack<scalar> pack) { result.store(tiles.row(tile) + r, tiles.col(tile) + c, pack); });
    }
}
"""


def solution(A_local: torch.Tensor, B_local: torch.Tensor) -> torch.Tensor:
    A, B = A_local.contiguous(), B_local.contiguous()
    depth, cols, world = A.shape[1], B.shape[1], dist.get_world_size()
    rows = A.shape[0] // world
    out = A.new_empty(rows, cols)
    tiles = cdiv(rows, GEMM_TILE) * cdiv(cols, GEMM_TILE)
    ex = exchange(world * tiles * GEMM_TILE * GEMM_TILE, A.dtype, A.device)
    kernel = compile(SOURCE, "gemm_reduce_scatter", dtype=A.dtype, options=(f"-DWORLD={world}",))
    grid = ex.programs(world * tiles, per_sm=2)
    sizes = rows, cols, depth, ex.rank
    kernel(grid, GEMM_THREADS, A, B, out, ex.buffers, ex.signals, ex.next_offset(), *sizes, shared=GEMM_SHARED)
    return out
