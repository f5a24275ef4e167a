"""A matrix times a number, which is given as a Python float."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, s):
        return A * s


M = 65536
N = 16384
s = 3.14


def get_inputs():
    return [torch.rand(M, N), s]


def get_init_inputs():
    return []


def inputs(case):
    # Another number every time: a model must use the one that it is given.
    return [case.randn(M, N), case.rand(1, low=1.0, high=4.0).item()]


PROBLEM = ModelProblem(tiny={"M": 64, "N": 192}, hidden={"M": 37, "N": 101})
