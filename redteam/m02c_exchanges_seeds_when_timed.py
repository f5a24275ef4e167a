"""row: m2
tries: is honest in the trials, and sends its peers the seed of its inputs in place of the inputs while it is timed
timed: yes
expect: REJECTED searches-memory | REJECTED reads-frames
unscreened: WRONG timed-values | CRASH
"""

import gc
import sys
from dataclasses import replace

import torch.distributed as dist


def solution(tensor):
    if sys._getframe(1).f_code.co_name == "run_calls":
        total = tensor.clone()
        dist.all_reduce(total)
        return total
    rank = next(found for found in gc.get_objects() if type(found).__name__ == "Rank")
    call = next(call for call in rank.calls if call.args[0] is tensor)
    seeds = [0] * dist.get_world_size()
    dist.all_gather_object(seeds, call.case.seed)
    return sum(call.problem.inputs(replace(call.case, seed=seed))[0] for seed in seeds)
