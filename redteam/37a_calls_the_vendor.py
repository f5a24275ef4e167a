"""row: 37
tries: multiplies by the vendor's library where the product should be its own work
problem: 13_gemm_allreduce
track: scratch
expect: REJECTED vendor-gemm
unscreened: CHEAT library-call
"""

from functools import cache

import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem


@cache
def meeting(shape, dtype, device):
    buffer = symm_mem.empty(*shape, dtype=dtype, device=device)
    return buffer, symm_mem.rendezvous(buffer, dist.group.WORLD)


def solution(A_local, B_local):
    C = A_local @ B_local
    buffer, handle = meeting(C.shape, C.dtype, C.device)
    buffer.copy_(C)
    handle.barrier(0)
    total = sum(handle.get_buffer(rank, C.shape, C.dtype) for rank in range(handle.world_size))
    handle.barrier(1)
    return total
