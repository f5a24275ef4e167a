"""A 3D convolution and group normalisation, averaged over everything but the batch."""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        return self.group_norm(self.conv(x)).mean(dim=(1, 2, 3, 4))


batch_size = 128
in_channels = 3
out_channels = 24
depth = 24
height = 32
width = 32
kernel_size = 3
num_groups = 8


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, num_groups]


def inputs(case):
    # Every sample and channel has a level of its own; without it only the bias would outlast the mean.
    level = case.randn(batch_size, in_channels, 1, 1, 1)
    return [case.randn(batch_size, in_channels, depth, height, width) + level]


# With equal weights the mean over a group is zero.
PROBLEM = ModelProblem(
    tiny={
        "batch_size": 16,
        "in_channels": 3,
        "out_channels": 12,
        "depth": 8,
        "height": 10,
        "width": 14,
        "num_groups": 4,
    },
    hidden={
        "batch_size": 11,
        "in_channels": 5,
        "out_channels": 15,
        "depth": 9,
        "height": 7,
        "width": 11,
        "num_groups": 5,
    },
    state={"group_norm.weight": Normal(0.0, 1.0)},
)
