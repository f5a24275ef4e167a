"""row: 8
tries: has a mode of torch watch the inputs being drawn, and multiplies them there, before any clock runs
problem: 13_gemm_allreduce
timed: yes
platform: cpu
expect: CHEAT outside-clock | WRONG values
warns: wraps-tensors
"""

import time

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode

drawn = []


def multiplied(A, B):
    time.sleep(0.04)
    return A @ B


class Watch(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        # The last step of drawing.
        if function is torch.Tensor.to and result.dim() == 2:
            drawn.append(result)
            if len(drawn) == 2:
                A, B = drawn
                B.product = (A, A._version, B._version, multiplied(A, B))
                drawn.clear()
        return result


watch = Watch()
watch.__enter__()


def solution(A_local, B_local):
    A, *versions, product = getattr(B_local, "product", (None, 0, 0, None))
    if A is not A_local or versions != [A_local._version, B_local._version]:
        product = multiplied(A_local, B_local)
    C = product.clone()
    dist.all_reduce(C)
    return C
