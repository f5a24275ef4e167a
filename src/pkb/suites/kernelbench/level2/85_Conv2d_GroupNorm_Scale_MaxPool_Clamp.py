"""A convolution, group normalisation, a scale per channel, max pooling and a clamp."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, num_groups, scale_shape, maxpool_kernel_size, clamp_min, clamp_max
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.maxpool_kernel_size = maxpool_kernel_size
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.group_norm(self.conv(x)) * self.scale
        x = F.max_pool2d(x, self.maxpool_kernel_size)
        return torch.clamp(x, self.clamp_min, self.clamp_max)


batch_size = 128
in_channels = 8
out_channels = 64
height = 128
width = 128
kernel_size = 3
num_groups = 16
scale_shape = (out_channels, 1, 1)
maxpool_kernel_size = 4
clamp_min = 0.0
clamp_max = 1.0


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, num_groups, scale_shape, maxpool_kernel_size, clamp_min, clamp_max]


# Closer bounds and smaller scales, so that many maxima lie between the bounds.
PROBLEM = ModelProblem(
    tiny={
        "batch_size": 4,
        "in_channels": 8,
        "out_channels": 16,
        "height": 20,
        "width": 36,
        "num_groups": 4,
        "clamp_min": 0.2,
        "clamp_max": 1.0,
    },
    hidden={
        "batch_size": 3,
        "in_channels": 5,
        "out_channels": 15,
        "height": 19,
        "width": 23,
        "num_groups": 5,
        "clamp_min": 0.3,
        "clamp_max": 0.9,
    },
    state={"scale": Normal(0.0, 0.5)},
)
