"""Helpers for multi-GPU kernels in Triton: pointer tables, a barrier between ranks, tiles; and `exchange`.

They work compiled on a GPU and interpreted on a CPU: no inline assembly, and no program ever waits for another program
of its own rank. The shape of a kernel that uses them:

    @triton.jit
    def kernel(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
        copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
        rank_barrier(signals, RANK, WORLD)
        sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)

Program b works on the same tiles on every rank, so it only needs to wait for program b of the other ranks.

Programs that wait must all be resident at once, those of all ranks, and leave room for what other ranks still have to
run. Heavy work therefore goes into kernels that never wait. Where such a kernel uses much shared memory, kernels that
wait leave multiprocessors free for it (`per_sm=1`), since a multiprocessor that holds any program cannot divide its
memory anew. A stream runs its kernels in order: a rank that reaches a barrier of the second kernel has finished the
first one, and a rank that starts the second kernel has passed all barriers of the first.
"""

import torch
import triton
import triton.language as tl

from pkb.symmetric import Exchange as Exchange
from pkb.symmetric import exchange as exchange


@triton.jit
def peer(buffers, rank, like):
    """Return a rank's buffer as a pointer of the type of `like`, from the table `exchange.buffers`."""
    address = tl.load(buffers.to(tl.pointer_type(tl.int64)) + rank)
    # The compiler cannot know that buffers are aligned, and would move one element at a time.
    return tl.multiple_of(address.to(like.dtype), 16)


@triton.jit
def rank_barrier(signals, RANK: tl.constexpr, WORLD: tl.constexpr):
    """Wait until this program has come here on all ranks; what it stored there before is then visible.

    Program b has words b * WORLD + r of the pads. Each flag is raised by one rank and taken down by the other, so the
    pad is all zeros again afterwards.
    """
    channel = tl.program_id(0)
    table = signals.to(tl.pointer_type(tl.int64))
    own = tl.load(table + RANK).to(tl.pointer_type(tl.int32)) + channel * WORLD
    # The release below is one thread's; this orders the stores of the whole program before it.
    tl.debug_barrier()
    for step in range(1, WORLD):
        target = (RANK + step) % WORLD
        theirs = tl.load(table + target).to(tl.pointer_type(tl.int32)) + channel * WORLD + RANK
        while tl.atomic_cas(theirs, 0, 1, sem="release", scope="sys") != 0:
            pass
    for step in range(1, WORLD):
        source = (RANK + step) % WORLD
        while tl.atomic_cas(own + source, 1, 0, sem="acquire", scope="sys") != 1:
            pass
    tl.debug_barrier()


@triton.jit
def copy_tiles(source, target, count, BLOCK: tl.constexpr):
    """Copy this program's tiles of `count` elements."""
    for tile in range(tl.program_id(0), tl.cdiv(count, BLOCK), tl.num_programs(0)):
        place = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(target + place, tl.load(source + place, mask=place < count), mask=place < count)


@triton.jit
def sum_tiles(buffers, offset, out, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    """Sum this program's tiles over all ranks' buffers, in float32."""
    for tile in range(tl.program_id(0), tl.cdiv(count, BLOCK), tl.num_programs(0)):
        place = tile * BLOCK + tl.arange(0, BLOCK)
        total = tl.zeros([BLOCK], dtype=tl.float32)
        for step in range(WORLD):
            # Every rank begins with its own copy and then asks another peer, so that no link is hit by all.
            theirs = peer(buffers, (RANK + step) % WORLD, out) + offset
            total += tl.load(theirs + place, mask=place < count, other=0.0).to(tl.float32)
        tl.store(out + place, total.to(out.dtype.element_ty), mask=place < count)


@triton.jit
def share_of(rank, count, WORLD: tl.constexpr):
    """Return the first element and the length of a rank's share of `count` elements; it begins at a multiple of 16."""
    share = tl.cdiv(tl.cdiv(count, WORLD), 16) * 16
    return rank * share, tl.minimum(share, count - rank * share)


@triton.jit
def two_shot_sum(buffers, signals, offset, out, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    """Sum all ranks' buffers: each rank sums its share in place, all meet, then each fetches every share.

    Every element crosses the links twice for any number of ranks; with `sum_tiles` alone, once for each other rank.
    """
    start, length = share_of(RANK, count, WORLD)
    sum_tiles(buffers, offset + start, peer(buffers, RANK, out) + offset + start, length, RANK, WORLD, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    for step in range(WORLD):
        source = (RANK + step) % WORLD
        start, length = share_of(source, count, WORLD)
        copy_tiles(peer(buffers, source, out) + offset + start, out + start, length, BLOCK)


def two_shot_pays(size: int, world: int) -> bool:
    """Return whether fetching less makes up for a second barrier, for a payload of `size` bytes."""
    return world > 2 and size >= 512 * 1024


@triton.jit
def tile_corner(tile, M, N, TILE: tl.constexpr):
    """Return the first row and column of a tile of an [M, N] matrix.

    Tiles are numbered column by column in bands eight tiles high: programs that run together then find each
    other's rows of the left factor and columns of the right one in the cache.
    """
    across = tl.cdiv(N, TILE)
    band = tile // (8 * across)
    high = tl.minimum(tl.cdiv(M, TILE) - 8 * band, 8)
    within = tile - 8 * band * across
    return (8 * band + within % high) * TILE, within // high * TILE


@triton.jit
def matmul_tile(a, b, row, col, M, N, K, TILE: tl.constexpr, DEPTH: tl.constexpr, EVEN: tl.constexpr):
    """Return the [TILE, TILE] tile at (row, col) of A @ B, both contiguous, in float32. EVEN: all tiles are whole."""
    rows = row + tl.arange(0, TILE)
    cols = col + tl.arange(0, TILE)
    inner = tl.arange(0, DEPTH)
    left = a + rows[:, None] * K + inner[None, :]
    right = b + inner[:, None] * N + cols[None, :]
    total = tl.zeros([TILE, TILE], dtype=tl.float32)
    for k in range(0, K, DEPTH):
        if EVEN:
            x = tl.load(left)
            y = tl.load(right)
        else:
            x = tl.load(left, mask=(rows < M)[:, None] & (k + inner < K)[None, :], other=0.0)
            y = tl.load(right, mask=(k + inner < K)[:, None] & (cols < N)[None, :], other=0.0)
        # TF32 would be a precision the reference does not have.
        total = tl.dot(x, y, total, input_precision="ieee")
        left += DEPTH
        right += DEPTH * N
    return total


@triton.jit
def store_tile(c, tile, row, col, M, N, TILE: tl.constexpr):
    """Store the tile at (row, col) of C, which is contiguous."""
    rows = row + tl.arange(0, TILE)
    cols = col + tl.arange(0, TILE)
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c + rows[:, None] * N + cols[None, :], tile.to(c.dtype.element_ty), mask=inside)


def tiling(M: int, N: int, K: int, dtype: torch.dtype) -> tuple[int, dict[str, int]]:
    """Return the number of tiles of an [M, N] product, and launch arguments of a kernel around `matmul_tile`.

    Tiles are large where the tensor cores can use them.
    """
    large = dtype.itemsize == 2 and min(M, N) >= 256 and N % 16 == K % 16 == 0
    tile, depth = (128, 64) if large else (64, 32)
    even = M % tile == N % tile == K % depth == 0
    launch = {"TILE": tile, "DEPTH": depth, "EVEN": even, "num_warps": 8 if large else 4, "num_stages": 3}
    return triton.cdiv(M, tile) * triton.cdiv(N, tile), launch
