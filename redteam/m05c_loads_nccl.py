"""row: m5
tries: loads NCCL by its file's name
track: scratch
expect: REJECTED library-collective
"""

import ctypes

nccl = ctypes.CDLL("libnccl.so.2")


def solution(tensor):
    total = tensor.clone()
    nccl.ncclAllReduce(tensor.data_ptr(), total.data_ptr(), tensor.numel(), 7, 0, None, None)
    return total
