"""RMS norm over the channels at every pixel, without weights; num_features is not used."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + self.eps)


batch_size = 112
num_features = 64
dim1 = 512
dim2 = 512


def get_inputs():
    return [torch.rand(batch_size, num_features, dim1, dim2)]


def get_init_inputs():
    return [num_features]


def inputs(case):
    # Normal values are normalised as they are: pixels get scales of their own, some so small that epsilon counts.
    scale = 10 ** case.rand(batch_size, 1, dim1, dim2, low=-2.0, high=0.0)
    return [scale * case.randn(batch_size, num_features, dim1, dim2)]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "num_features": 16, "dim1": 24, "dim2": 20},
    hidden={"batch_size": 3, "num_features": 7, "dim1": 13, "dim2": 11},
)
