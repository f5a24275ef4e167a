"""A transposed convolution, the spatial mean, a bias, the logsumexp over the channels, times ten."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv_transpose(x).mean(dim=(2, 3), keepdim=True)
        x = torch.logsumexp(x + self.bias, dim=1, keepdim=True)
        return torch.sum(x, dim=(2, 3)) * 10.0


batch_size = 16
in_channels = 64
out_channels = 128
height = 512
width = 512
kernel_size = 3
bias_shape = (out_channels, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, bias_shape]


def inputs(case):
    # Every sample and channel has a level of its own, which a spatial mean keeps.
    level = case.randn(batch_size, in_channels, 1, 1)
    return [case.randn(batch_size, in_channels, height, width) + level]


PROBLEM = ModelProblem(
    tiny={"batch_size": 16, "in_channels": 8, "out_channels": 16, "height": 12, "width": 20},
    hidden={"batch_size": 11, "in_channels": 5, "out_channels": 11, "height": 11, "width": 13},
)
