"""Strided, padded transposed convolution of volumes in groups of channels; the kernel differs in each dimension."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1, 1),
        padding=(0, 0, 0),
        output_padding=(0, 0, 0),
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


batch_size = 8
in_channels = 32
out_channels = 32
depth = 12
height = 24
width = 48
kernel_size = (3, 5, 7)
stride = (2, 2, 2)
padding = (1, 2, 3)
output_padding = (1, 1, 1)
groups = 4


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, groups]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "in_channels": 16, "out_channels": 24, "depth": 5, "height": 6, "width": 8, "groups": 4},
    hidden={"batch_size": 3, "in_channels": 9, "out_channels": 15, "depth": 3, "height": 5, "width": 4, "groups": 3},
)
