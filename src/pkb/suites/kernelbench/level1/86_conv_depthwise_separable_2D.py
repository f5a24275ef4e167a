"""Depthwise separable convolution: every channel by itself, then a mixture of channels at every pixel."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.depthwise = nn.Conv2d(
            in_channels,
            in_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=in_channels,
            bias=bias,
        )
        self.pointwise = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x):
        return self.pointwise(self.depthwise(x))


batch_size = 16
in_channels = 64
out_channels = 128
height = 512
width = 512
kernel_size = 3
stride = 1
padding = 1
dilation = 1


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, dilation]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 16, "out_channels": 24, "height": 18, "width": 22},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "height": 11, "width": 13},
)
