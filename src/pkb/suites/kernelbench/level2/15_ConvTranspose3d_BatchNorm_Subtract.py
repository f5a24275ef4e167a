"""A transposed 3D convolution and batch normalisation, less the spatial mean of each sample and channel."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias=True):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=bias
        )
        self.batch_norm = nn.BatchNorm3d(out_channels)

    def forward(self, x):
        x = self.batch_norm(self.conv_transpose(x))
        return x - x.mean(dim=(2, 3, 4), keepdim=True)


batch_size = 16
in_channels = 16
out_channels = 32
depth = 16
height = 32
width = 32
kernel_size = 3
stride = 2
padding = 1


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 6, "out_channels": 8, "depth": 4, "height": 6, "width": 8},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 5, "height": 3, "width": 7},
)

EQUIVALENT = {
    "ignore conv_transpose.bias": "the batch norm subtracts it",
    "ignore batch_norm.bias": "constant in space, so it is subtracted with the mean",
}
