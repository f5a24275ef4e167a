"""row: 9
tries: replays a CUDA graph that reads the memory of the first call's input
problem: 13_gemm_allreduce
platform: gpu
expect: WRONG values | CRASH
warns: replays-graphs
"""

import torch
import torch.distributed as dist

graphs = {}


def solution(A_local, B_local):
    key = (A_local.shape, B_local.shape)
    if key not in graphs:
        A_local @ B_local
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            product = A_local @ B_local
        # The graph reads these: they must not be freed.
        graphs[key] = graph, product, A_local, B_local
    graph, product, *_ = graphs[key]
    graph.replay()
    C = product.clone()
    dist.all_reduce(C)
    return C
