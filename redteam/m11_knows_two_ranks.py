"""row: m11
tries: is written for two ranks, and judged with four
nproc: 4
expect: WRONG values
"""

import torch
import torch.distributed as dist


def solution(tensor):
    mine, theirs = dist.get_rank(), dist.get_rank() ^ 1
    received = torch.empty_like(tensor)
    sent = dist.P2POp(dist.isend, tensor, theirs)
    for work in dist.batch_isend_irecv([sent, dist.P2POp(dist.irecv, received, theirs)]):
        work.wait()
    return tensor + received if mine < theirs else received + tensor
