"""Every row divided by the mean, not the sum, of its absolute values."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, x):
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


batch_size = 32768
dim = 65535


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []


def inputs(case):
    # Rows of one scale would all have nearly the same norm.
    scale = 10 ** case.rand(batch_size, 1, low=-2.0, high=0.0)
    return [scale * case.randn(batch_size, dim)]


PROBLEM = ModelProblem(tiny={"batch_size": 32, "dim": 480}, hidden={"batch_size": 7, "dim": 509})
