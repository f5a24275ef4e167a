"""The whole tensor divided by its Frobenius norm."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, x):
        return x / torch.linalg.vector_norm(x)


batch_size = 112
num_features = 64
dim1 = 512
dim2 = 512


def get_inputs():
    return [torch.rand(batch_size, num_features, dim1, dim2)]


def get_init_inputs():
    return []


def inputs(case):
    # The norm of values of one scale is nearly the same for every draw.
    scale = 10 ** case.rand(1, low=-2.0, high=0.0)
    return [scale * case.randn(batch_size, num_features, dim1, dim2)]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "num_features": 16, "dim1": 24, "dim2": 20},
    hidden={"batch_size": 3, "num_features": 7, "dim1": 13, "dim2": 11},
)
