"""row: 24
tries: leaves a kernel running on a stream of its own when the call has ended
timed: yes
platform: gpu
expect: HANG | CHEAT outside-clock
warns: other-streams watches-the-clock
"""

import torch
import torch.distributed as dist

stream = None


def solution(tensor):
    global stream
    stream = stream or torch.cuda.Stream()
    total = tensor.clone()
    dist.all_reduce(total)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(4_000_000_000)
    return total
