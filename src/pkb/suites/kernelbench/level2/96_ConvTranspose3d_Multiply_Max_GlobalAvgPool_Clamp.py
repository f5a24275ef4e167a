"""A scaled transposed 3D convolution, max pooling, the spatial mean and a clamp to [0, 1]."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, scale, maxpool_kernel_size):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.scale = scale
        self.maxpool_kernel_size = maxpool_kernel_size

    def forward(self, x):
        x = F.max_pool3d(self.conv_transpose(x) * self.scale, self.maxpool_kernel_size)
        return torch.clamp(x.mean(dim=(2, 3, 4), keepdim=True), 0, 1)


batch_size = 128
in_channels = 3
out_channels = 16
depth = 16
height = 32
width = 32
kernel_size = 3
stride = 2
padding = 1
scale = 0.5
maxpool_kernel_size = 2


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, scale, maxpool_kernel_size]


def inputs(case):
    # Every sample and channel has a level of its own, which the mean keeps; small, so that the clamp leaves some.
    level = case.randn(batch_size, in_channels, 1, 1, 1, scale=0.3)
    return [case.randn(batch_size, in_channels, depth, height, width, scale=0.3) + level]


# The negative bias makes up for the maxima, so that means fall on both sides of zero.
PROBLEM = ModelProblem(
    tiny={"batch_size": 8, "in_channels": 3, "out_channels": 8, "depth": 4, "height": 6, "width": 8},
    hidden={"batch_size": 7, "in_channels": 5, "out_channels": 7, "depth": 5, "height": 3, "width": 7},
    state={"conv_transpose.bias": Normal(-0.7, 0.8)},
)
