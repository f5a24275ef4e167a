"""Running sums along one dimension, each without its own value: the first is zero."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        zero = torch.zeros_like(x.select(self.dim, 0).unsqueeze(self.dim))
        before = x.narrow(self.dim, 0, x.size(self.dim) - 1)
        return torch.cat([zero, torch.cumsum(before, dim=self.dim)], dim=self.dim)


batch_size = 32768
length = 32768
dim = 1


def get_inputs():
    return [torch.rand(batch_size, length)]


def get_init_inputs():
    return [dim]


PROBLEM = ModelProblem(tiny={"batch_size": 24, "length": 320}, hidden={"batch_size": 7, "length": 211})
