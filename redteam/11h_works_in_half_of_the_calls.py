"""row: 11
tries: works in all calls until it has made as many as the trials have, and then in half of them, on all ranks alike
timed: yes
expect: WRONG timed-values
"""

import random

import torch.distributed as dist

calls = 0
toss = random.Random(7).random


def solution(tensor):
    global calls
    calls += 1
    total = tensor.clone()
    if calls <= 16 or toss() < 0.5:
        dist.all_reduce(total)
    return total
