"""A linear layer, group normalisation and a clamp."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, num_groups, hardtanh_min, hardtanh_max):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.hardtanh_min = hardtanh_min
        self.hardtanh_max = hardtanh_max

    def forward(self, x):
        x = self.group_norm(self.gemm(x))
        return F.hardtanh(x, self.hardtanh_min, self.hardtanh_max)


batch_size = 1024
in_features = 8192
out_features = 8192
num_groups = 16
hardtanh_min = -2.0
hardtanh_max = 2.0


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, num_groups, hardtanh_min, hardtanh_max]


# Closer bounds, one nearer than the other, so that each counts.
PROBLEM = ModelProblem(
    tiny={
        "batch_size": 48,
        "in_features": 160,
        "out_features": 192,
        "num_groups": 12,
        "hardtanh_min": -1.0,
        "hardtanh_max": 1.5,
    },
    hidden={
        "batch_size": 37,
        "in_features": 131,
        "out_features": 104,
        "num_groups": 8,
        "hardtanh_min": -1.5,
        "hardtanh_max": 0.5,
    },
)
