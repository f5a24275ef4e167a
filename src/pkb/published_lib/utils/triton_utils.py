"""Threads, and barriers between ranks, in Triton, as candidates of the public ParallelKernelBench ask for them.

Compiled, a signal is one PTX loop per thread. Interpreted, a program is one thread, and signals are Triton's atomics.
"""

import triton
import triton.language as tl

_INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


@triton.jit
def get_tid():
    """Return the thread's place in its block, as x, y and z."""
    if _INTERPRETED:
        place = 0, 0, 0
    else:
        place = tl.inline_asm_elementwise(
            "mov.u32 $0, %tid.x; mov.u32 $1, %tid.y; mov.u32 $2, %tid.z;",
            "=r,=r,=r",
            [],
            dtype=(tl.uint32, tl.uint32, tl.uint32),
            is_pure=True,
            pack=1,
        )
    return place


@triton.jit
def get_ntid():
    """Return the number of threads of a block, as x, y and z."""
    if _INTERPRETED:
        extent = 1, 1, 1
    else:
        extent = tl.inline_asm_elementwise(
            "mov.u32 $0, %ntid.x; mov.u32 $1, %ntid.y; mov.u32 $2, %ntid.z;",
            "=r,=r,=r",
            [],
            dtype=(tl.uint32, tl.uint32, tl.uint32),
            is_pure=True,
            pack=1,
        )
    return extent


@triton.jit
def get_flat_tid():
    """Return the thread's number in its block."""
    x, y, z = get_tid()
    width, height, _ = get_ntid()
    return (z * height + y) * width + x


@triton.jit
def get_flat_bid():
    """Return the block's number in the grid."""
    return (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)


@triton.jit
def sync_threads():
    """Wait for all threads of the block."""
    tl.debug_barrier()


@triton.jit
def _swap(addrs, before: tl.constexpr, after: tl.constexpr, sem: tl.constexpr):
    """Wait until each word is `before`, and make it `after`; interpreted."""
    waiting = tl.full(addrs.shape, 1, tl.int32)
    words = addrs.to(tl.pointer_type(tl.int32))
    while tl.max(waiting, 0) == 1:
        # A word that is done is compared with a value that no word has.
        seen = tl.atomic_cas(words, tl.where(waiting == 1, before, -1), tl.where(waiting == 1, after, -1), sem, "sys")
        waiting = tl.where((waiting == 1) & (seen != before), 1, 0)


@triton.jit
def send_signal(addrs, sem: tl.constexpr):
    """Raise flags, each as soon as it is down: relaxed, or releasing what was written before (acq_rel)."""
    tl.static_assert(sem == "relaxed" or sem == "acq_rel", "sem is relaxed or acq_rel")
    if _INTERPRETED:
        _swap(addrs, 0, 1, "relaxed" if sem == "relaxed" else "release")
    elif sem == "relaxed":
        tl.inline_asm_elementwise(
            """{
            .reg .u32 %was; .reg .pred %again;
            raise: atom.relaxed.sys.global.cas.b32 %was, [$1], 0, 1;
            setp.ne.u32 %again, %was, 0; @%again bra raise; mov.u32 $0, %was;
            }""",
            "=r,l",
            [addrs],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
    else:
        tl.inline_asm_elementwise(
            """{
            .reg .u32 %was; .reg .pred %again;
            raise: atom.release.sys.global.cas.b32 %was, [$1], 0, 1;
            setp.ne.u32 %again, %was, 0; @%again bra raise; mov.u32 $0, %was;
            }""",
            "=r,l",
            [addrs],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )


@triton.jit
def wait_signal(addrs, sem: tl.constexpr):
    """Wait until flags are up and take them down: relaxed, or acquiring what was released with them (acq_rel)."""
    tl.static_assert(sem == "relaxed" or sem == "acq_rel", "sem is relaxed or acq_rel")
    if _INTERPRETED:
        _swap(addrs, 1, 0, "relaxed" if sem == "relaxed" else "acquire")
    elif sem == "relaxed":
        tl.inline_asm_elementwise(
            """{
            .reg .u32 %was; .reg .pred %again;
            lower: atom.relaxed.sys.global.cas.b32 %was, [$1], 1, 0;
            setp.ne.u32 %again, %was, 1; @%again bra lower; mov.u32 $0, %was;
            }""",
            "=r,l",
            [addrs],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
    else:
        tl.inline_asm_elementwise(
            """{
            .reg .u32 %was; .reg .pred %again;
            lower: atom.acquire.sys.global.cas.b32 %was, [$1], 1, 0;
            setp.ne.u32 %again, %was, 1; @%again bra lower; mov.u32 $0, %was;
            }""",
            "=r,l",
            [addrs],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )


@triton.jit
def blockwise_barrier(signal_pad_ptrs, block_id, rank: tl.constexpr, world_size: tl.constexpr, sem: tl.constexpr):
    """Meet the blocks of this number on all ranks; without a number, the block's own.

    Thread r raises this rank's flag in the pad of rank r and waits for rank r's flag. Block b has the words
    b * world_size + r of a pad, which are all down again afterwards. For the order of other threads' accesses, put
    sync_threads before and after, as needed.
    """
    if block_id is None:
        block_id = get_flat_bid()
    ranks = tl.arange(0, world_size)
    pads = signal_pad_ptrs.to(tl.pointer_type(tl.uint64))
    theirs = tl.load(pads + ranks).to(tl.pointer_type(tl.uint32)) + block_id * world_size + rank
    own = tl.load(pads + rank).to(tl.pointer_type(tl.uint32)) + block_id * world_size + ranks
    if get_flat_tid() < world_size:
        send_signal(theirs, sem)
        wait_signal(own, sem)
