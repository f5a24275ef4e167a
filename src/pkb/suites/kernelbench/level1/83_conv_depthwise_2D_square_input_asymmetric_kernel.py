"""Convolution of every channel of square images by itself, along the height only."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels,
            in_channels,
            (kernel_size, 1),
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=in_channels,
            bias=bias,
        )

    def forward(self, x):
        return self.conv2d(x)


batch_size = 64
in_channels = 8
size = 512
kernel_size = 3
stride = 1
padding = 0
dilation = 1


def get_inputs():
    return [torch.rand(batch_size, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, kernel_size, stride, padding, dilation]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 12, "size": 20}, hidden={"batch_size": 3, "in_channels": 7, "size": 13}
)
