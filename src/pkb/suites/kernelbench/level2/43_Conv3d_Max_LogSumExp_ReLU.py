"""A 3D convolution, max pooling, the logsumexp over the channels and ReLU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        x = F.max_pool3d(self.conv(x), 2, stride=2)
        return torch.relu(torch.logsumexp(x, dim=1, keepdim=True))


batch_size = 4
in_channels = 32
out_channels = 64
depth = 32
height = 128
width = 128
kernel_size = 3
stride = 1
padding = 1


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding]


def inputs(case):
    # Planes of different size: with them, and a negative bias, the logsumexp has either sign.
    size = case.rand(batch_size, 1, depth, 1, 1, low=0.0, high=2.0)
    return [case.randn(batch_size, in_channels, depth, height, width) * size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 6, "out_channels": 16, "depth": 8, "height": 12, "width": 14},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 13, "depth": 9, "height": 10, "width": 14},
    state={"conv.bias": Normal(-5.0, 0.5)},
)
