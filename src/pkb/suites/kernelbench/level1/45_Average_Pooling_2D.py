"""Means of windows of images that touch; rows and columns left over are dropped."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.avgpool = nn.AvgPool2d(kernel_size, stride, padding)

    def forward(self, x):
        return self.avgpool(x)


batch_size = 16
channels = 64
height = 2048
width = 2048
kernel_size = 11


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [kernel_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "channels": 8, "height": 104, "width": 90},
    hidden={"batch_size": 3, "channels": 5, "height": 47, "width": 61},
)
