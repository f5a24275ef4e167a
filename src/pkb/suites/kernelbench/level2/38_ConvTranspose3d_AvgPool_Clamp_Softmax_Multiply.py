"""Average pooling, a transposed 3D convolution, a clamp, softmax over all positions and a scale per channel."""

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
        output_padding,
        pool_kernel_size,
        clamp_min,
        clamp_max,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )
        self.scale = nn.Parameter(torch.ones(1, out_channels, 1, 1, 1))
        self.pool_kernel_size = pool_kernel_size
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.conv_transpose(F.avg_pool3d(x, self.pool_kernel_size))
        x = torch.clamp(x, self.clamp_min, self.clamp_max)
        return torch.softmax(x.flatten(2), dim=2).view_as(x) * self.scale


batch_size = 32
in_channels = 32
out_channels = 64
depth = 32
height = 64
width = 64
kernel_size = 3
stride = 2
padding = 1
output_padding = 1
pool_kernel_size = 2
clamp_min = 0.0
clamp_max = 1.0


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
        clamp_min,
        clamp_max,
    ]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 6, "out_channels": 8, "depth": 4, "height": 6, "width": 8},
    hidden={
        "batch_size": 2,
        "in_channels": 5,
        "out_channels": 7,
        "depth": 5,
        "height": 6,
        "width": 7,
        "clamp_min": -0.5,
        "clamp_max": 2.0,
    },
)
