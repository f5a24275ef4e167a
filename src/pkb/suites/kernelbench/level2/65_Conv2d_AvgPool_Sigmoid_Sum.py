"""A convolution, average pooling and sigmoid, summed over everything but the batch."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.pool_kernel_size = pool_kernel_size

    def forward(self, x):
        x = torch.sigmoid(F.avg_pool2d(self.conv(x), self.pool_kernel_size))
        return torch.sum(x, dim=(1, 2, 3))


batch_size = 128
in_channels = 8
out_channels = 64
height = 384
width = 384
kernel_size = 3
pool_kernel_size = 4


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, pool_kernel_size]


def inputs(case):
    # Samples of different size and level have different sums, however many values there are.
    size = case.rand(batch_size, 1, 1, 1, low=0.2, high=3.0)
    level = case.randn(batch_size, in_channels, 1, 1)
    return [(case.randn(batch_size, in_channels, height, width) + level) * size]


# With a negative bias the mean sigmoid depends on the size of a sample.
PROBLEM = ModelProblem(
    tiny={"batch_size": 16, "in_channels": 8, "out_channels": 16, "height": 20, "width": 36},
    hidden={"batch_size": 11, "in_channels": 5, "out_channels": 11, "height": 19, "width": 23},
    state={"conv.bias": Normal(-2.0, 0.5)},
)
