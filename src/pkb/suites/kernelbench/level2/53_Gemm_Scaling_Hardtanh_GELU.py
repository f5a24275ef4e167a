"""A scaled linear layer, a clamp and GELU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor, hardtanh_min, hardtanh_max):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor
        self.hardtanh_min = hardtanh_min
        self.hardtanh_max = hardtanh_max

    def forward(self, x):
        x = F.hardtanh(self.gemm(x) * self.scaling_factor, self.hardtanh_min, self.hardtanh_max)
        return F.gelu(x)


batch_size = 2048
in_features = 8192
out_features = 8192
scaling_factor = 0.5
hardtanh_min = -2
hardtanh_max = 2


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, scaling_factor, hardtanh_min, hardtanh_max]


def inputs(case):
    # Large values, so that the clamp is met on both sides.
    return [case.randn(batch_size, in_features, scale=2.0)]


# GELU hides a bound far below zero.
PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192, "hardtanh_min": -1, "hardtanh_max": 2},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 101, "hardtanh_min": -0.5, "hardtanh_max": 1.0},
)
