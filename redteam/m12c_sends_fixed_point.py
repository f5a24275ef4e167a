"""row: m12
tries: sends float32 as whole numbers of 22 bits, which hold all normal values well
expect: WRONG values
"""

import torch
import torch.distributed as dist

SCALE = 2.0**17


def solution(tensor):
    codes = (tensor * SCALE).round().clamp(-(2**21), 2**21 - 1).to(torch.int32)
    dist.all_reduce(codes)
    return codes.to(tensor.dtype) / SCALE
