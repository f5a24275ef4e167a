"""row: 26
tries: answers with zeros where results are small
problem: 45_reducescatter_fused_rmsnorm
expect: WRONG values
"""

import torch
import torch.distributed as dist


def solution(rs_input_1d, gamma, eps):
    rows = rs_input_1d.numel() // dist.get_world_size() // gamma.numel()
    return torch.zeros(rows, gamma.numel(), dtype=rs_input_1d.dtype, device=rs_input_1d.device)
