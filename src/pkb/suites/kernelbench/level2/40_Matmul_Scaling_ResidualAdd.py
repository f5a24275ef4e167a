"""A linear layer h gives h * scale + h."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.matmul(x)
        return x * self.scaling_factor + x


batch_size = 16384
in_features = 4096
out_features = 4096
scaling_factor = 0.5


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, scaling_factor]


PROBLEM = ModelProblem(
    tiny={"batch_size": 80, "in_features": 96, "out_features": 112},
    hidden={"batch_size": 67, "in_features": 83, "out_features": 59},
)
