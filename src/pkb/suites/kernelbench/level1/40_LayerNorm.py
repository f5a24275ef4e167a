"""Layer norm of every image over channels, height and width, with a weight and a bias for every value."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        return self.ln(x)


batch_size = 16
features = 64
dim1 = 256
dim2 = 256


def get_inputs():
    return [torch.rand(batch_size, features, dim1, dim2)]


def get_init_inputs():
    return [(features, dim1, dim2)]


def inputs(case):
    # Normal values are normalised as they are: images get means and scales of their own, some so small that epsilon
    # counts.
    scale = 10 ** case.rand(batch_size, 1, 1, 1, low=-2.0, high=0.0)
    shift = case.randn(batch_size, 1, 1, 1)
    return [scale * (case.randn(batch_size, features, dim1, dim2) + shift)]


PROBLEM = ModelProblem(
    tiny={"batch_size": 6, "features": 8, "dim1": 12, "dim2": 10},
    hidden={"batch_size": 5, "features": 5, "dim1": 9, "dim2": 7},
)
