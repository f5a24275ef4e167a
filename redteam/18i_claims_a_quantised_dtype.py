"""row: 18
tries: breaks the judge with a timed result of a quantised dtype, whose bytes crash torch
timed: yes
expect: REJECTED searches-memory
unscreened: CRASH protocol
"""

import gc

import torch.distributed as dist

channel = next(found for found in gc.get_objects() if type(found).__name__ == "Rank").channel
send, timed = channel.send, []


def forge(header, *rest):
    timed.extend(["now"] if header["kind"] in ("BlockTimes", "DigestList") else [])
    if timed and header["kind"] == "CallResults":
        header["results"][0]["leaves"][0]["dtype"] = "quint8"
    send(header, *rest)


channel.send = forge


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
