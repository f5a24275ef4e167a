"""A transposed 3D convolution, batch normalisation and average pooling twice.

The argument `bias_shape` is not used.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.batch_norm = nn.BatchNorm3d(out_channels)

    def forward(self, x):
        x = self.batch_norm(self.conv_transpose(x))
        return F.avg_pool3d(F.avg_pool3d(x, 2), 2)


batch_size = 64
in_channels = 3
out_channels = 16
depth = 32
height = 32
width = 32
kernel_size = 3
stride = 2
padding = 1
bias_shape = (out_channels, 1, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, bias_shape]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 3, "out_channels": 8, "depth": 7, "height": 9, "width": 11},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 6, "height": 7, "width": 9},
)

EQUIVALENT = {"ignore conv_transpose.bias": "the batch norm subtracts it"}
