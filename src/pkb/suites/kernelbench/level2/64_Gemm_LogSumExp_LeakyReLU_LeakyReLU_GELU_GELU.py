"""A linear layer, the logsumexp over its outputs, leaky ReLU twice and GELU twice."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        x = torch.logsumexp(self.linear(x), dim=1, keepdim=True)
        x = F.leaky_relu(F.leaky_relu(x, 0.01), 0.01)
        return F.gelu(F.gelu(x))


batch_size = 1024
in_features = 8192
out_features = 8192


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]


def inputs(case):
    # Rows of different size: with them, and a negative bias, the logsumexp has either sign.
    size = case.rand(batch_size, 1, low=0.0, high=3.0)
    return [case.randn(batch_size, in_features) * size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 48},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 61},
    state={"linear.bias": Normal(-7.0, 0.5)},
)
