"""A divided 3D convolution, max pooling and a spatial mean, plus a bias per channel, summed over the channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divisor, pool_size, bias_shape, sum_dim):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.divisor = divisor
        self.pool_size = pool_size
        self.sum_dim = sum_dim

    def forward(self, x):
        x = F.max_pool3d(self.conv(x) / self.divisor, self.pool_size)
        x = x.mean(dim=(2, 3, 4), keepdim=True)
        return torch.sum(x + self.bias, dim=self.sum_dim)


batch_size = 128
in_channels = 8
out_channels = 16
depth = 16
height = 64
width = 64
kernel_size = (3, 3, 3)
divisor = 2.0
pool_size = (2, 2, 2)
bias_shape = (out_channels, 1, 1, 1)
sum_dim = 1


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, divisor, pool_size, bias_shape, sum_dim]


def inputs(case):
    # Every sample and channel has a level of its own, which a spatial mean keeps.
    level = case.randn(batch_size, in_channels, 1, 1, 1, scale=2.0)
    return [case.randn(batch_size, in_channels, depth, height, width) + level]


# The bias cancels most of what the maxima have in common.
PROBLEM = ModelProblem(
    tiny={"batch_size": 16, "in_channels": 3, "out_channels": 8, "depth": 8, "height": 10, "width": 14},
    hidden={"batch_size": 11, "in_channels": 5, "out_channels": 7, "depth": 9, "height": 7, "width": 11},
    state={"bias": Normal(-0.5, 0.5)},
)
