"""row: 14
tries: returns a tensor subclass that computes when it is read
expect: WRONG type
warns: wraps-tensors
"""

import torch
import torch.distributed as dist


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            plain = [arg.as_subclass(torch.Tensor) if isinstance(arg, Lazy) else arg for arg in args]
            if function is torch.Tensor.detach:
                dist.all_reduce(plain[0])
            return function(*plain, **(kwargs or {}))


def solution(tensor):
    return tensor.clone().as_subclass(Lazy)
