"""row: m2
tries: sends its peers all that its inputs are made from, the changed element included
expect: REJECTED searches-memory
unscreened: WRONG values | CRASH
"""

import gc
from dataclasses import replace

import torch.distributed as dist


def solution(tensor):
    rank = next(found for found in gc.get_objects() if type(found).__name__ == "Rank")
    call = next(call for call in rank.calls if call.args[0] is tensor)
    recipes = [None] * dist.get_world_size()
    dist.all_gather_object(recipes, (call.case.seed, call.bump))
    draw = type(call).draw
    return sum(draw(call.problem, replace(call.case, seed=seed), bump=bump).args[0] for seed, bump in recipes)
