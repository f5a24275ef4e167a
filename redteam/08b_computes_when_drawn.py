"""row: 8
tries: computes each call's result when its inputs are drawn, before any clock runs
timed: yes
platform: cpu
expect: REJECTED imports-the-judge | REJECTED patches
unscreened: CHEAT outside-clock | CHEAT patched
"""

import time

import torch.distributed as dist

from pkb.judge.calls import Call

draw = Call.drawn.__func__


def drawn_and_computed(cls, *args, **kwargs):
    call = draw(cls, *args, **kwargs)
    time.sleep(0.04)
    total = call.args[0].clone()
    dist.all_reduce(total)
    call.args[0].answer = total
    return call


Call.drawn = classmethod(drawn_and_computed)


def solution(tensor):
    return tensor.answer.clone()
