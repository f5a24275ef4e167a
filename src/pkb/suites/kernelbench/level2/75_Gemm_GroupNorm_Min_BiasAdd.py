"""A linear layer, group normalisation and the minimum over the features, plus a bias.

The bias has the shape [1, features, 1, 1], so the sum has the shape [1, features, batch, 1].
"""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = torch.min(self.group_norm(self.gemm(x)), dim=1, keepdim=True).values
        return x + self.bias


batch_size = 1024
in_features = 8192
out_features = 8192
num_groups = 512
bias_shape = (1, out_features, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, num_groups, bias_shape]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192, "num_groups": 12},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 104, "num_groups": 8},
)
