"""The mean of a linear layer less a learned vector, its logsumexp over that single value, GELU, plus the input."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)
        self.subtract = nn.Parameter(torch.randn(out_features))

    def forward(self, x):
        mean = torch.mean(self.gemm(x) - self.subtract, dim=1, keepdim=True)
        return F.gelu(torch.logsumexp(mean, dim=1, keepdim=True)) + x


batch_size = 2048
in_features = 8192
out_features = 8192


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]


# Weights whose mean is not zero, because only their means count.
PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 96, "out_features": 64},
    hidden={"batch_size": 37, "in_features": 83, "out_features": 59},
    state={"gemm.weight": Normal(0.05, 0.05), "gemm.bias": Normal(1.0, 2.0), "subtract": Normal(0.5, 2.0)},
)

EQUIVALENT = {
    "skip logsumexp": "the logarithm of one exponential",
}
