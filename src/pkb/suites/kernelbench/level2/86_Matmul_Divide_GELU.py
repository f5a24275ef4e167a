"""A linear layer divided by a constant, then GELU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, output_size, divisor):
        super().__init__()
        self.linear = nn.Linear(input_size, output_size)
        self.divisor = divisor

    def forward(self, x):
        return F.gelu(self.linear(x) / self.divisor)


batch_size = 1024
input_size = 8192
output_size = 8192
divisor = 10.0


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, output_size, divisor]


def inputs(case):
    # Large values, because the division makes them small, and there GELU is nearly linear.
    return [case.randn(batch_size, input_size, scale=5.0)]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "input_size": 160, "output_size": 192},
    hidden={"batch_size": 37, "input_size": 131, "output_size": 101},
)
