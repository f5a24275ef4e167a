"""A linear layer plus a bias, clamped to [-1, 1], Mish and group normalisation."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias_shape, num_groups):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.groupnorm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        x = F.hardtanh(self.gemm(x) + self.bias, -1.0, 1.0)
        return self.groupnorm(F.mish(x))


batch_size = 1024
in_features = 8192
out_features = 8192
bias_shape = (out_features,)
num_groups = 256


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, bias_shape, num_groups]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192, "num_groups": 6},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 104, "num_groups": 8},
)
