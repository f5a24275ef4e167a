"""Softmax of every row."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


batch_size = 4096
dim = 393216


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []


def inputs(case):
    # Rows of one scale would all have nearly the same sum.
    scale = case.rand(batch_size, 1, low=0.5, high=1.5)
    return [scale * case.randn(batch_size, dim)]


PROBLEM = ModelProblem(tiny={"batch_size": 16, "dim": 384}, hidden={"batch_size": 5, "dim": 301})
