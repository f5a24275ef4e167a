"""row: honest
tries: uses an autograd function of its own, so that the result requires a gradient
expect: CORRECT
"""

import torch
import torch.distributed as dist

SCALE = torch.nn.Parameter(torch.ones(()))


class AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, scale):
        ctx.save_for_backward(scale)
        total = tensor * scale
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0], None


def solution(tensor):
    return AllReduce.apply(tensor, SCALE.to(tensor.device, tensor.dtype))
