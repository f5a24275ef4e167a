"""Dilated transposed convolution of sequences."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.conv1d_transpose = nn.ConvTranspose1d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=bias
        )

    def forward(self, x):
        return self.conv1d_transpose(x)


batch_size = 32
in_channels = 32
out_channels = 64
length = 131072
kernel_size = 5
stride = 1
padding = 0
dilation = 3


def get_inputs():
    return [torch.rand(batch_size, in_channels, length)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, dilation]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 16, "out_channels": 24, "length": 150},
    hidden={"batch_size": 3, "in_channels": 7, "out_channels": 11, "length": 67},
)
