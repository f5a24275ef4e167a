"""Transposed convolution of sequences."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=False
    ):
        super().__init__()
        self.conv1d_transpose = nn.ConvTranspose1d(
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
        return self.conv1d_transpose(x)


batch_size = 64
in_channels = 128
out_channels = 128
length = 65536
kernel_size = 3


def get_inputs():
    return [torch.rand(batch_size, in_channels, length)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 24, "out_channels": 32, "length": 150},
    hidden={"batch_size": 3, "in_channels": 7, "out_channels": 11, "length": 67},
)
