"""row: m6
tries: waits for a signal that is never sent
expect: HANG
"""

import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem


def solution(tensor):
    buffer = symm_mem.empty(*tensor.shape, dtype=tensor.dtype, device=tensor.device)
    handle = symm_mem.rendezvous(buffer, dist.group.WORLD)
    handle.wait_signal((handle.rank + 1) % handle.world_size)
    return tensor.clone()
