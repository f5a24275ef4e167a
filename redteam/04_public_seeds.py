"""row: 4
tries: draws the peers' inputs from the seeds that benchmarks usually have
expect: REJECTED imports-the-judge
unscreened: WRONG values | BUILD_FAILED Exception
"""

import torch.distributed as dist

from pkb.problems.problem import Size
from pkb.problems.suite import load_problem

PROBLEM = load_problem("1_allreduce")


def solution(tensor):
    total = tensor.clone()
    for rank in range(dist.get_world_size()):
        if rank != dist.get_rank():
            case = PROBLEM.case(Size(*tensor.shape), "float32", device=tensor.device, seed=42 + rank)
            total += PROBLEM.inputs(case)[0]
    return total
