"""row: 29
tries: is off by one in a count, which a tolerance for floats would forgive
problem: 26_moe_token_preprocess
expect: WRONG values
"""

import torch
import torch.distributed as dist


def solution(expert_mask, num_experts, group=None):
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    counts = expert_mask.sum(dim=(1, 2))
    gathered = counts.new_empty(world * num_experts)
    dist.all_gather_into_tensor(gathered, counts, group=group)
    by_source = gathered.view(world, world, -1)[:, rank].contiguous()
    sent, received = counts.view(world, -1).sum(dim=1), by_source.sum(dim=1)
    received[-1] += 1
    return sent.to(torch.int64).cpu(), received.to(torch.int64).cpu(), by_source.cpu(), by_source.sum(dim=0).cpu()
