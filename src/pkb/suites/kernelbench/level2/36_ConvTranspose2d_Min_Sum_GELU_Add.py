"""A transposed convolution, its minimum over the channels summed over the height, GELU, plus a learned scalar."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = torch.min(self.conv_transpose(x), dim=1, keepdim=True).values
        x = torch.sum(x, dim=2, keepdim=True)
        return F.gelu(x) + self.bias


batch_size = 16
in_channels = 64
out_channels = 128
height = 128
width = 128
kernel_size = 3
stride = 2
padding = 1
output_padding = 1
bias_shape = (1, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape]


def inputs(case):
    # Columns of different size: with them the sums of the minima have either sign.
    size = case.rand(batch_size, 1, 1, width, low=0.0, high=0.3)
    return [case.randn(batch_size, in_channels, height, width) * size]


# The positive bias makes up for the minimum over the channels.
PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 8, "out_channels": 16, "height": 8, "width": 24},
    hidden={"batch_size": 3, "in_channels": 5, "out_channels": 11, "height": 7, "width": 19},
    state={"bias": Normal(1.0, 0.5), "conv_transpose.bias": Normal(0.6, 0.1)},
)
