"""A linear layer, average pooling along the features, GELU, a scale and the maximum."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, pool_kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.pool_kernel_size = pool_kernel_size
        self.scale_factor = scale_factor

    def forward(self, x):
        x = F.avg_pool1d(self.matmul(x).unsqueeze(1), self.pool_kernel_size).squeeze(1)
        return torch.max(F.gelu(x) * self.scale_factor, dim=1).values


batch_size = 1024
in_features = 8192
out_features = 8192
pool_kernel_size = 16
scale_factor = 2.0


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, pool_kernel_size, scale_factor]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 101},
)
