"""Strided, dilated convolution of sequences."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, dilation=1, bias=False):
        super().__init__()
        self.conv1d = nn.Conv1d(in_channels, out_channels, kernel_size, stride=stride, dilation=dilation, bias=bias)

    def forward(self, x):
        return self.conv1d(x)


batch_size = 64
in_channels = 64
out_channels = 128
length = 524280
kernel_size = 3
stride = 3
dilation = 4


def get_inputs():
    return [torch.rand(batch_size, in_channels, length)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, dilation]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 24, "out_channels": 32, "length": 240},
    hidden={"batch_size": 3, "in_channels": 7, "out_channels": 11, "length": 131},
)
