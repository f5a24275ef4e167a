"""Transposed convolution of images with a kernel that is wider than high."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1),
        padding=(0, 0),
        output_padding=(0, 0),
        dilation=(1, 1),
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x):
        return self.conv_transpose2d(x)


batch_size = 64
in_channels = 64
out_channels = 128
height = 128
width = 256
kernel_size = (3, 5)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 16, "out_channels": 24, "height": 14, "width": 20},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "height": 9, "width": 13},
)
