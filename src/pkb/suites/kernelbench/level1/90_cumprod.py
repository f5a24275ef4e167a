"""Running products along one dimension."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.cumprod(x, dim=self.dim)


batch_size = 32768
length = 32768
dim = 1


def get_inputs():
    return [torch.rand(batch_size, length)]


def get_init_inputs():
    return [dim]


def inputs(case):
    # Products of normal values soon vanish; those of factors near 1, with either sign, keep their size.
    sign = 2 * case.randint(0, 2, batch_size, length) - 1
    return [sign * torch.exp(case.randn(batch_size, length, scale=length**-0.5))]


PROBLEM = ModelProblem(tiny={"batch_size": 24, "length": 320}, hidden={"batch_size": 7, "length": 211})
