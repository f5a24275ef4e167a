"""row: 13
tries: returns at once, while a thread that nobody waits for computes the result, so small that it may be in time
problem: L1/19
nproc: 1
expect: WRONG values
warns: starts-threads
"""

import threading

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        threading.Thread(target=lambda: torch.relu(x, out=out)).start()
        return out
