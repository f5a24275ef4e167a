"""Maxima of overlapping, dilated windows along a sequence."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False):
        super().__init__()
        self.maxpool = nn.MaxPool1d(kernel_size, stride, padding, dilation, return_indices)

    def forward(self, x):
        return self.maxpool(x)


batch_size = 64
channels = 192
length = 65536
kernel_size = 8
stride = 1
padding = 4
dilation = 3
return_indices = False


def get_inputs():
    return [torch.rand(batch_size, channels, length)]


def get_init_inputs():
    return [kernel_size, stride, padding, dilation, return_indices]


def inputs(case):
    # Mostly negative: a window's maximum is then below zero often enough that zeros in the padding would show.
    return [case.randn(batch_size, channels, length) - 1.5]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "channels": 8, "length": 160}, hidden={"batch_size": 3, "channels": 5, "length": 101}
)
