"""A transposed 3D convolution, softmax over the channels, then sigmoid."""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias=True):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            bias=bias,
        )

    def forward(self, x):
        return torch.sigmoid(torch.softmax(self.conv_transpose(x), dim=1))


batch_size = 16
in_channels = 32
out_channels = 64
depth = 16
height = 32
width = 32
kernel_size = 3
stride = 2
padding = 1
output_padding = 1


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding]


def inputs(case):
    # Large values, so that the softmax is far from uniform.
    return [case.randn(batch_size, in_channels, depth, height, width, scale=2.0)]


# A larger bias, to be seen beside large values.
PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 6, "out_channels": 8, "depth": 4, "height": 6, "width": 8},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 5, "height": 3, "width": 7},
    state={"conv_transpose.bias": Normal(0.0, 1.5)},
)
