"""A transposed convolution, max pooling, a clamp, the spatial mean and its tanh."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        maxpool_kernel_size,
        maxpool_stride,
        hardtanh_min,
        hardtanh_max,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.maxpool_kernel_size = maxpool_kernel_size
        self.maxpool_stride = maxpool_stride
        self.hardtanh_min = hardtanh_min
        self.hardtanh_max = hardtanh_max

    def forward(self, x):
        x = F.max_pool2d(self.conv_transpose(x), self.maxpool_kernel_size, self.maxpool_stride)
        x = F.hardtanh(x, self.hardtanh_min, self.hardtanh_max)
        return torch.tanh(x.mean(dim=(2, 3), keepdim=True))


batch_size = 128
in_channels = 64
out_channels = 64
height = 256
width = 256
kernel_size = 3
stride = 1
padding = 1
maxpool_kernel_size = 2
maxpool_stride = 2
hardtanh_min = -1
hardtanh_max = 1


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        maxpool_kernel_size,
        maxpool_stride,
        hardtanh_min,
        hardtanh_max,
    ]


def inputs(case):
    # Every sample and channel has a level of its own, which the mean keeps; small, so that the clamp leaves some.
    level = case.randn(batch_size, in_channels, 1, 1, scale=0.3)
    return [case.randn(batch_size, in_channels, height, width, scale=0.3) + level]


PROBLEM = ModelProblem(
    tiny={"batch_size": 8, "in_channels": 8, "out_channels": 16, "height": 12, "width": 20},
    hidden={"batch_size": 7, "in_channels": 5, "out_channels": 11, "height": 15, "width": 17},
)
