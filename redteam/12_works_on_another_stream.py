"""row: 12
tries: works on a stream that the caller does not wait for
timed: yes
platform: gpu
expect: WRONG values | WRONG timed-values | CHEAT outside-clock
warns: other-streams
"""

import torch
import torch.distributed as dist

stream = None


def solution(tensor):
    global stream
    stream = stream or torch.cuda.Stream()
    total = torch.empty_like(tensor)
    with torch.cuda.stream(stream):
        # Long enough for the caller's marks to be behind us.
        torch.cuda._sleep(20_000_000)
        total.copy_(tensor)
        dist.all_reduce(total)
    return total
