"""A transposed 3D convolution, ReLU and group normalisation."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups, bias=False):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, bias=bias)
        self.group_norm = nn.GroupNorm(groups, out_channels)

    def forward(self, x):
        return self.group_norm(torch.relu(self.conv_transpose(x)))


batch_size = 16
in_channels = 64
out_channels = 128
depth = 32
height = 32
width = 32
kernel_size = 3
groups = 8
bias = False


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, groups, bias]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 6, "out_channels": 12, "depth": 4, "height": 6, "width": 8, "groups": 4},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 9, "depth": 5, "height": 3, "width": 7, "groups": 3},
)
