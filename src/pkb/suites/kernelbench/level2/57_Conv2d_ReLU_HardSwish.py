"""A convolution, ReLU and hard swish, the latter written out."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        return x * torch.clamp((x + 3) / 6, 0, 1)


batch_size = 128
in_channels = 8
out_channels = 64
height = 128
width = 128
kernel_size = 3


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


def inputs(case):
    # Large values, so that the hard swish also meets its linear part.
    return [case.randn(batch_size, in_channels, height, width, scale=2.0)]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 6, "out_channels": 16, "height": 20, "width": 36},
    hidden={"batch_size": 3, "in_channels": 5, "out_channels": 11, "height": 19, "width": 23},
)
