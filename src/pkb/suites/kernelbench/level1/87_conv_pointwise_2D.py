"""Mixture of the channels at every pixel: a 1 x 1 convolution of images, by a layer that is named conv1d."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, bias=False):
        super().__init__()
        self.conv1d = nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=1, padding=0, bias=bias)

    def forward(self, x):
        return self.conv1d(x)


batch_size = 16
in_channels = 64
out_channels = 128
height = 1024
width = 1024


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 24, "out_channels": 32, "height": 18, "width": 22},
    hidden={"batch_size": 2, "in_channels": 7, "out_channels": 11, "height": 11, "width": 13},
)
