"""Means of overlapping, strided windows of volumes; zeros of the padding count as values."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.avgpool = nn.AvgPool3d(kernel_size, stride, padding)

    def forward(self, x):
        return self.avgpool(x)


batch_size = 16
channels = 32
depth = 128
height = 128
width = 256
kernel_size = 3
stride = 2
padding = 1


def get_inputs():
    return [torch.rand(batch_size, channels, depth, height, width)]


def get_init_inputs():
    return [kernel_size, stride, padding]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "channels": 6, "depth": 16, "height": 18, "width": 22},
    hidden={"batch_size": 3, "channels": 5, "depth": 11, "height": 13, "width": 9},
)
