"""Batch norm of images, by the statistics of the batch."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features)

    def forward(self, x):
        return self.bn(x)


batch_size = 64
num_features = 64
dim1 = 512
dim2 = 512


def get_inputs():
    return [torch.rand(batch_size, num_features, dim1, dim2)]


def get_init_inputs():
    return [num_features]


def inputs(case):
    # Normal values are normalised as they are: channels get means and scales of their own, some so small that epsilon
    # counts.
    scale = 10 ** case.rand(1, num_features, 1, 1, low=-2.0, high=0.0)
    shift = case.randn(1, num_features, 1, 1)
    return [scale * (case.randn(batch_size, num_features, dim1, dim2) + shift)]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "num_features": 16, "dim1": 24, "dim2": 20},
    hidden={"batch_size": 3, "num_features": 7, "dim1": 13, "dim2": 11},
)
