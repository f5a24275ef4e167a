"""A transposed convolution, softmax over the channels, a bias per channel, a scale and sigmoid."""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape, scaling_factor
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = torch.softmax(self.conv_transpose(x), dim=1)
        return torch.sigmoid((x + self.bias) * self.scaling_factor)


batch_size = 128
in_channels = 64
out_channels = 128
height = 64
width = 64
kernel_size = 4
stride = 2
padding = 1
output_padding = 1
bias_shape = (out_channels, 1, 1)
scaling_factor = 2.0


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape, scaling_factor]


def inputs(case):
    # Large values, so that the softmax is far from uniform.
    return [case.randn(batch_size, in_channels, height, width, scale=2.0)]


# A smaller bias, which leaves the softmax visible.
PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 8, "out_channels": 16, "height": 12, "width": 20},
    hidden={"batch_size": 3, "in_channels": 5, "out_channels": 11, "height": 11, "width": 13},
    state={"bias": Normal(0.0, 0.3)},
)
