"""A scaled transposed 3D convolution, batch normalisation and the spatial mean."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale_factor, eps=1e-5, momentum=0.1):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size)
        self.batch_norm = nn.BatchNorm3d(out_channels, eps=eps, momentum=momentum)
        self.scale_factor = scale_factor

    def forward(self, x):
        x = self.batch_norm(self.conv_transpose(x) * self.scale_factor)
        return x.mean(dim=(2, 3, 4), keepdim=True)


batch_size = 16
in_channels = 64
out_channels = 128
depth = 16
height = 32
width = 32
kernel_size = 5
scale_factor = 2.0


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scale_factor]


def inputs(case):
    # Every sample and channel has a level of its own, which a spatial mean keeps.
    level = case.randn(batch_size, in_channels, 1, 1, 1)
    return [case.randn(batch_size, in_channels, depth, height, width) + level]


PROBLEM = ModelProblem(
    tiny={"batch_size": 8, "in_channels": 6, "out_channels": 8, "depth": 4, "height": 6, "width": 8},
    hidden={"batch_size": 7, "in_channels": 5, "out_channels": 7, "depth": 5, "height": 3, "width": 7},
)

EQUIVALENT = {
    "ignore conv_transpose.bias": "the batch norm subtracts it",
    "skip mul": "the batch norm divides by it",
}
