"""row: 14
tries: returns a subclass that is also called Tensor, and computes when it is read, after the clock has stopped
timed: yes
platform: cpu
expect: WRONG type | WRONG values | CHEAT outside-clock
warns: wraps-tensors
"""

import time

import torch
import torch.distributed as dist

waiting = set()


class Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            for arg in args:
                if isinstance(arg, cls) and arg.data_ptr() in waiting:
                    waiting.remove(arg.data_ptr())
                    time.sleep(0.04)
                    dist.all_reduce(arg.as_subclass(torch.Tensor))
            return function(*args, **(kwargs or {}))


def solution(tensor):
    total = tensor.clone()
    waiting.add(total.data_ptr())
    return total.as_subclass(Tensor)
