"""Transposed convolution of volumes with a cubic kernel."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        dilation=1,
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            (kernel_size, kernel_size, kernel_size),
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


batch_size = 8
in_channels = 48
out_channels = 24
depth = 96
height = 96
width = 96
kernel_size = 3


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 16, "out_channels": 8, "depth": 7, "height": 9, "width": 8},
    hidden={"batch_size": 2, "in_channels": 7, "out_channels": 5, "depth": 4, "height": 5, "width": 6},
)
