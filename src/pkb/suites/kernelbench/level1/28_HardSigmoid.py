"""Hard sigmoid: x / 6 + 1 / 2, clamped to [0, 1]."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, x):
        return F.hardsigmoid(x)


batch_size = 4096
dim = 393216


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []


def inputs(case):
    # It clamps beyond 3, where few values of scale 1 are.
    return [case.randn(batch_size, dim, scale=3.0)]


PROBLEM = ModelProblem(tiny={"batch_size": 16, "dim": 384}, hidden={"batch_size": 5, "dim": 301})
