"""A scaled linear layer, doubled and clamped, its logsumexp l over the outputs, and l * mish(l)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, scale_factor, clamp_min, clamp_max):
        super().__init__()
        self.matmul = nn.Linear(input_size, hidden_size)
        self.scale_factor = scale_factor
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.matmul(x) * self.scale_factor
        x = torch.clamp(x + x, self.clamp_min, self.clamp_max)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return x * F.mish(x)


batch_size = 1024
input_size = 8192
hidden_size = 8192
scale_factor = 2.0
clamp_min = -10.0
clamp_max = 10.0


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, scale_factor, clamp_min, clamp_max]


def inputs(case):
    # Rows of different size have different logsumexps, however many outputs there are.
    size = case.rand(batch_size, 1, low=0.1, high=1.0)
    return [case.randn(batch_size, input_size) * size]


# Bounds this low keep the logsumexp near zero, where Mish is not the identity.
PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "input_size": 160, "hidden_size": 192, "clamp_min": -5.0, "clamp_max": -4.0},
    hidden={"batch_size": 37, "input_size": 131, "hidden_size": 101, "clamp_min": -4.5, "clamp_max": -3.5},
)
