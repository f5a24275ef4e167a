"""Convolution of square images with a square kernel."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=False):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels,
            out_channels,
            (kernel_size, kernel_size),
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv2d(x)


batch_size = 16
in_channels = 16
out_channels = 128
size = 1024
kernel_size = 3


def get_inputs():
    return [torch.rand(batch_size, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 16, "out_channels": 24, "size": 22},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "size": 15},
)
