"""GELU in the approximate form with tanh."""

import math

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


batch_size = 8192
dim = 8192


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"batch_size": 16, "dim": 384}, hidden={"batch_size": 5, "dim": 301})
