"""row: m2
tries: sends its peers the seed of its inputs in place of the inputs, to be drawn again there
expect: REJECTED searches-memory
unscreened: WRONG values | CRASH
"""

import gc
from dataclasses import replace

import torch.distributed as dist


def solution(tensor):
    rank = next(found for found in gc.get_objects() if type(found).__name__ == "Rank")
    call = next(call for call in rank.calls if call.args[0] is tensor)
    seeds = [0] * dist.get_world_size()
    dist.all_gather_object(seeds, call.case.seed)
    return sum(call.problem.inputs(replace(call.case, seed=seed))[0] for seed in seeds)
