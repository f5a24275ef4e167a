"""row: 14
tries: returns a list that computes its elements when it is iterated, after the clock has stopped
problem: 9_layernorm_backward
timed: yes
platform: cpu
expect: WRONG form | WRONG type | WRONG values | CHEAT outside-clock
"""

import time

import torch.distributed as dist


class Later(list):
    def __init__(self, X_hat, dY):
        super().__init__()
        self.arguments = X_hat, dY

    def __iter__(self):
        if not len(self):
            X_hat, dY = self.arguments
            time.sleep(0.04)
            self += (dY * X_hat).sum(dim=0), dY.sum(dim=0)
            for gradient in super().__iter__():
                dist.all_reduce(gradient)
        return super().__iter__()


def solution(X_hat, dY):
    return Later(X_hat, dY)
