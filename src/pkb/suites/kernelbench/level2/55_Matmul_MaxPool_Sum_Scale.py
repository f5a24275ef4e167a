"""A linear layer, max pooling along the features, summed and scaled."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_features, out_features, kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.kernel_size = kernel_size
        self.scale_factor = scale_factor

    def forward(self, x):
        x = F.max_pool1d(self.matmul(x).unsqueeze(1), self.kernel_size).squeeze(1)
        return torch.sum(x, dim=1) * self.scale_factor


batch_size = 128
in_features = 32768
out_features = 32768
kernel_size = 2
scale_factor = 0.5


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, kernel_size, scale_factor]


def inputs(case):
    # Rows of different size have different sums, however many outputs there are.
    size = case.rand(batch_size, 1, low=0.2, high=2.0)
    return [case.randn(batch_size, in_features) * size]


# The negative bias makes up for the maxima.
PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 101},
    state={"matmul.bias": Normal(-0.8, 0.5)},
)
