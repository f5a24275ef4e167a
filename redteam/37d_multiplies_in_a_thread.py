"""row: 37
tries: multiplies in another thread
problem: 13_gemm_allreduce
nproc: 1
track: scratch
expect: REJECTED vendor-gemm | CHEAT library-call
unscreened: CHEAT library-call
"""

import threading

import torch


def solution(A_local, B_local):
    out = []
    thread = threading.Thread(target=lambda: out.append(torch.mm(A_local, B_local)))
    thread.start()
    thread.join()
    return out[0]
