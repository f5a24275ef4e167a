"""Transposed convolution of volumes with a kernel that differs in each dimension."""

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


batch_size = 16
in_channels = 32
out_channels = 16
depth = 16
height = 32
width = 64
kernel_size = (3, 5, 7)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 12, "out_channels": 8, "depth": 5, "height": 8, "width": 12},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 3, "height": 5, "width": 7},
)
