"""Maxima of strided, dilated windows of volumes."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.maxpool = nn.MaxPool3d(kernel_size, stride, padding, dilation, return_indices, ceil_mode)

    def forward(self, x):
        return self.maxpool(x)


batch_size = 16
channels = 32
dim1 = 128
dim2 = 128
dim3 = 128
kernel_size = 3
stride = 2
padding = 1
dilation = 3


def get_inputs():
    return [torch.rand(batch_size, channels, dim1, dim2, dim3)]


def get_init_inputs():
    return [kernel_size, stride, padding, dilation]


def inputs(case):
    # Mostly negative: a window's maximum is then below zero often enough that zeros in the padding would show.
    return [case.randn(batch_size, channels, dim1, dim2, dim3) - 1.5]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "channels": 6, "dim1": 20, "dim2": 16, "dim3": 24},
    hidden={"batch_size": 3, "channels": 5, "dim1": 13, "dim2": 11, "dim3": 17},
)
