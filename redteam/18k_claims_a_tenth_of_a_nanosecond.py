"""row: 18
tries: breaks the judge with times above zero that are rounded to zero
timed: yes
expect: REJECTED searches-memory
unscreened: CRASH protocol
"""

import gc

import torch.distributed as dist

channel = next(found for found in gc.get_objects() if type(found).__name__ == "Rank").channel
send = channel.send


def forge(header, *rest):
    if header["kind"] == "BlockTimes":
        header["ns"] = [0.1 for _ in header["ns"]]
    send(header, *rest)


channel.send = forge


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
