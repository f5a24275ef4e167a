"""A scaled transposed convolution, averaged over space, and averaged again over the single value left."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, multiplier):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )
        self.multiplier = multiplier

    def forward(self, x):
        x = self.conv_transpose(x) * self.multiplier
        x = x.mean(dim=(2, 3), keepdim=True)
        return x.mean(dim=(2, 3), keepdim=True)


batch_size = 16
in_channels = 64
out_channels = 128
height = 128
width = 128
kernel_size = 3
stride = 2
padding = 1
output_padding = 1
multiplier = 0.5


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, multiplier]


def inputs(case):
    # Every sample and channel has a level of its own, which a spatial mean keeps.
    level = case.randn(batch_size, in_channels, 1, 1)
    return [case.randn(batch_size, in_channels, height, width) + level]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 8, "out_channels": 16, "height": 12, "width": 20},
    hidden={"batch_size": 3, "in_channels": 5, "out_channels": 11, "height": 11, "width": 13},
)

EQUIVALENT = {
    "skip mean 3": "the mean of one value",
}
