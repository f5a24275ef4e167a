"""A 3D convolution, hard swish, group normalisation and the spatial mean."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups=4, bias=True):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, bias=bias)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = self.group_norm(F.hardswish(self.conv(x)))
        return x.mean(dim=(2, 3, 4))


batch_size = 1024
in_channels = 3
out_channels = 16
depth = 16
height = 32
width = 32
kernel_size = 4


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


def inputs(case):
    # Every sample and channel has a level of its own, which a spatial mean keeps.
    level = case.randn(batch_size, in_channels, 1, 1, 1)
    return [case.randn(batch_size, in_channels, depth, height, width) + level]


PROBLEM = ModelProblem(
    tiny={"batch_size": 16, "in_channels": 3, "out_channels": 16, "depth": 8, "height": 10, "width": 14},
    hidden={"batch_size": 11, "in_channels": 5, "out_channels": 12, "depth": 9, "height": 7, "width": 11},
)
