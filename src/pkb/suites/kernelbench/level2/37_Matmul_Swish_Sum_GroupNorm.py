"""A linear layer, swish, plus a bias, then group normalisation."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        x = self.matmul(x)
        return self.group_norm(torch.sigmoid(x) * x + self.bias)


batch_size = 32768
in_features = 1024
out_features = 4096
num_groups = 64
bias_shape = (out_features,)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, num_groups, bias_shape]


PROBLEM = ModelProblem(
    tiny={"batch_size": 80, "in_features": 96, "out_features": 192, "num_groups": 6},
    hidden={"batch_size": 67, "in_features": 61, "out_features": 104, "num_groups": 8},
)
