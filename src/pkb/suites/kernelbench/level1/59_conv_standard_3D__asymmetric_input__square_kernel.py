"""Convolution of volumes in depth and height only: the kernel has width 1."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=False):
        super().__init__()
        self.conv3d = nn.Conv3d(
            in_channels,
            out_channels,
            (kernel_size, kernel_size, 1),
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv3d(x)


batch_size = 16
in_channels = 3
out_channels = 64
depth = 256
height = 256
width = 10
kernel_size = 3


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 3, "out_channels": 16, "depth": 18, "height": 14, "width": 6},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 11, "height": 13, "width": 3},
)
