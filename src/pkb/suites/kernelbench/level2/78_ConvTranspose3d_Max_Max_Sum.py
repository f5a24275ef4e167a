"""A transposed 3D convolution, max pooling by two and by three, summed over the channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        x = F.max_pool3d(F.max_pool3d(self.conv_transpose(x), 2), 3)
        return torch.sum(x, dim=1, keepdim=True)


batch_size = 16
in_channels = 32
out_channels = 64
depth = 32
height = 32
width = 32
kernel_size = 5
stride = 2
padding = 2


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding]


def inputs(case):
    # Samples of different size have different maxima, which a sum of many would hide.
    size = case.rand(batch_size, 1, 1, 1, 1, low=0.2, high=2.0)
    return [case.randn(batch_size, in_channels, depth, height, width) * size]


# A larger bias, to be seen beside the maxima.
PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 6, "out_channels": 8, "depth": 7, "height": 10, "width": 13},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 10, "height": 7, "width": 11},
    state={"conv_transpose.bias": Normal(0.0, 2.0)},
)
