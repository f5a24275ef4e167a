"""A transposed 3D convolution, max pooling, softmax over the channels less a vector, swish and channel maximum."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        pool_kernel_size,
        pool_stride,
        pool_padding,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )
        self.subtract = nn.Parameter(torch.randn(out_channels))
        self.pool_kernel_size = pool_kernel_size
        self.pool_stride = pool_stride
        self.pool_padding = pool_padding

    def forward(self, x):
        x = F.max_pool3d(self.conv_transpose(x), self.pool_kernel_size, self.pool_stride, self.pool_padding)
        x = torch.softmax(x, dim=1) - self.subtract.view(1, -1, 1, 1, 1)
        return torch.max(torch.sigmoid(x) * x, dim=1).values


batch_size = 128
in_channels = 3
out_channels = 16
depth = 16
height = 32
width = 32
kernel_size = 3
stride = 2
padding = 1
output_padding = 1
pool_kernel_size = 2
pool_stride = 2
pool_padding = 0


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        pool_kernel_size,
        pool_stride,
        pool_padding,
    ]


# What is subtracted differs less than the softmax, so that the softmax decides the maximum.
PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 3, "out_channels": 8, "depth": 6, "height": 8, "width": 10},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 5, "height": 3, "width": 7},
    state={"subtract": Normal(0.3, 0.1)},
)
