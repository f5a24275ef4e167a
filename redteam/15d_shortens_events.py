"""row: 15
tries: replaces the elapsed time of CUDA events
timed: yes
platform: gpu
expect: REJECTED patches
unscreened: CHEAT outside-clock | CHEAT patched | CHEAT floor
"""

import torch
import torch.distributed as dist

elapsed = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda start, end: elapsed(start, end) / 64


def solution(tensor):
    torch.cuda._sleep(2_000_000)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
