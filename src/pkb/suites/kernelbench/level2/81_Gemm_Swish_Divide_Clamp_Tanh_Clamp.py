"""A linear layer, swish, half of it clamped to [-1, 1], tanh and the same clamp again."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        x = self.gemm(x)
        x = torch.clamp(x * torch.sigmoid(x) / 2.0, -1.0, 1.0)
        return torch.clamp(torch.tanh(x), -1.0, 1.0)


batch_size = 1024
in_features = 8192
out_features = 8192


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]


def inputs(case):
    # Large values, so that many reach the upper bound.
    return [case.randn(batch_size, in_features, scale=2.0)]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 101},
)

EQUIVALENT = {
    "skip clamp 6": "tanh stays within the bounds",
}
