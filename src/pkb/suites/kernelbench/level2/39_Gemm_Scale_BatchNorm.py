"""A linear layer, a learned scale per feature and batch normalisation."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x):
        return self.bn(self.gemm(x) * self.scale)


batch_size = 16384
in_features = 4096
out_features = 4096
scale_shape = (out_features,)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, scale_shape]


PROBLEM = ModelProblem(
    tiny={"batch_size": 80, "in_features": 96, "out_features": 112},
    hidden={"batch_size": 67, "in_features": 83, "out_features": 59},
)

EQUIVALENT = {"ignore gemm.bias": "the batch norm subtracts it"}
