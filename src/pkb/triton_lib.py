"""Helpers for multi-GPU kernels in Triton: pointer tables, a barrier between ranks, tiles; and `exchange`.

They work compiled on a GPU and interpreted on a CPU: no inline assembly, and no program ever waits for
another program of its own rank. The shape of a kernel that uses them:

    @triton.jit
    def kernel(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
        copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
        rank_barrier(signals, RANK, WORLD)
        sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)

Program b works on the same tiles on every rank, so that meeting its namesakes is all the waiting it needs.
"""

import triton
import triton.language as tl

from pkb.symmetric import Exchange as Exchange
from pkb.symmetric import exchange as exchange


@triton.jit
def peer(buffers, rank, like):
    """Rank's buffer as a pointer of the type of `like`, from the table `exchange.buffers`."""
    address = tl.load(buffers.to(tl.pointer_type(tl.int64)) + rank)
    return address.to(like.dtype)


@triton.jit
def rank_barrier(signals, RANK: tl.constexpr, WORLD: tl.constexpr):
    """Wait until this program's namesakes on all ranks are here; what they stored before is then visible.

    Program b has words b * WORLD + r of the pads. Each flag is raised by one rank and taken down by the
    other, so that the pad is all zeros again afterwards.
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
def matmul_tile(a, b, row, col, M, N, K, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """The [TILE, TILE] tile at (row, col) of A @ B, both contiguous, in float32."""
    rows = row + tl.arange(0, TILE)
    cols = col + tl.arange(0, TILE)
    inner = tl.arange(0, DEPTH)
    total = tl.zeros([TILE, TILE], dtype=tl.float32)
    for k in range(0, K, DEPTH):
        left = (rows < M)[:, None] & (k + inner < K)[None, :]
        right = (k + inner < K)[:, None] & (cols < N)[None, :]
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :], mask=left, other=0.0)
        y = tl.load(b + (k + inner)[:, None] * N + cols[None, :], mask=right, other=0.0)
        # TF32 would be a precision the reference does not have.
        total = tl.dot(x, y, total, input_precision="ieee")
    return total
