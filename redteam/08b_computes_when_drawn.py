"""row: 8
tries: computes each call's result when its inputs are drawn, before any clock runs
timed: yes
platform: cpu
expect: REJECTED imports-the-judge | REJECTED patches
unscreened: CHEAT outside-clock | CHEAT patched
"""

import time

import torch.distributed as dist

from pkb.protocol.messages import DrawInputs
from pkb.rank.rank import HANDLERS, Rank

answers = {}


def and_computes(method):
    def drawn_and_computed(self, *args, **kwargs):
        result = method(self, *args, **kwargs)
        answers.clear()
        for call in self.calls:
            time.sleep(0.04)
            total = call.args[0].clone()
            dist.all_reduce(total)
            answers[id(call.args[0])] = total
        return result

    return drawn_and_computed


Rank._draw_calls = and_computes(Rank._draw_calls)
HANDLERS[DrawInputs] = and_computes(Rank.draw_inputs)


def solution(tensor):
    return answers[id(tensor)].clone()
