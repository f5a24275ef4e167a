"""Index of the maximum over one dimension, the first of equal ones."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.argmax(x, dim=self.dim)


batch_size = 128
dim1 = 4096
dim2 = 4095
reduce_dim = 1


def get_inputs():
    return [torch.rand(batch_size, dim1, dim2)]


def get_init_inputs():
    return [reduce_dim]


def inputs(case):
    # Columns lie on either side of zero, so that a search that starts from zero shows, and equal values are frequent.
    shift = case.randn(batch_size, 1, dim2, scale=4.0)
    return [(case.randn(batch_size, dim1, dim2) + shift).round(decimals=1)]


PROBLEM = ModelProblem(tiny={"batch_size": 6, "dim1": 80, "dim2": 72}, hidden={"batch_size": 5, "dim1": 61, "dim2": 37})
