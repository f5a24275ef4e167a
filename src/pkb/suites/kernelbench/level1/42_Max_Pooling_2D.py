"""Maxima of overlapping windows of images."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, kernel_size, stride, padding, dilation):
        super().__init__()
        self.maxpool = nn.MaxPool2d(kernel_size, stride, padding, dilation)

    def forward(self, x):
        return self.maxpool(x)


batch_size = 32
channels = 64
height = 512
width = 512
kernel_size = 4
stride = 1
padding = 1
dilation = 1


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [kernel_size, stride, padding, dilation]


def inputs(case):
    # Mostly negative: a window's maximum is then below zero often enough that zeros in the padding would show.
    return [case.randn(batch_size, channels, height, width) - 1.5]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "channels": 6, "height": 24, "width": 28},
    hidden={"batch_size": 3, "channels": 5, "height": 17, "width": 19},
)
