"""Means of overlapping windows along a sequence; zeros of the padding count as values."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, kernel_size, stride=1, padding=0):
        super().__init__()
        self.avgpool = nn.AvgPool1d(kernel_size, stride, padding)

    def forward(self, x):
        return self.avgpool(x)


batch_size = 64
channels = 128
length = 65536
kernel_size = 8
stride = 1
padding = 4


def get_inputs():
    return [torch.rand(batch_size, channels, length)]


def get_init_inputs():
    return [kernel_size, stride, padding]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "channels": 8, "length": 200}, hidden={"batch_size": 3, "channels": 5, "length": 97}
)
