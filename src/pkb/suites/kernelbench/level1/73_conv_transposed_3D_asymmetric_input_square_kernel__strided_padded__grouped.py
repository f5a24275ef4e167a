"""Strided, padded transposed convolution of volumes; output_padding is accepted and not used."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=False
    ):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            (kernel_size, kernel_size, kernel_size),
            stride=stride,
            padding=padding,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


batch_size = 4
in_channels = 32
out_channels = 32
depth = 32
height = 64
width = 128
kernel_size = 3
stride = 2
padding = 1
output_padding = 4


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 12, "out_channels": 16, "depth": 5, "height": 6, "width": 9},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 3, "height": 4, "width": 5},
)
