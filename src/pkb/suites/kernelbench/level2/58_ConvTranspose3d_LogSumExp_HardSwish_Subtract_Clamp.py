"""A transposed 3D convolution, the logsumexp l over the channels, l * sigmoid(l + 3) / 6 less a bias, and a clamp.

The argument `bias_shape` is not used: the bias is one number.
"""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.bias = nn.Parameter(torch.randn(1, 1, 1, 1))

    def forward(self, x):
        x = torch.logsumexp(self.conv_transpose(x), dim=1, keepdim=True)
        x = x * torch.sigmoid(x + 3) / 6
        return torch.clamp(x - self.bias, -1, 1)


batch_size = 128
in_channels = 3
out_channels = 16
depth = 16
height = 32
width = 32
kernel_size = 3
stride = 2
padding = 1
bias_shape = (1, 1, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, bias_shape]


def inputs(case):
    # Large values, so that the logsumexp has either sign and meets the clamp.
    return [case.randn(batch_size, in_channels, depth, height, width, scale=4.0)]


# A bias near 0.9 lets both bounds of the clamp be met.
PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 3, "out_channels": 8, "depth": 6, "height": 8, "width": 10},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 11, "depth": 5, "height": 3, "width": 7},
    state={"bias": Normal(0.9, 0.04), "conv_transpose.bias": Normal(-11.0, 1.0)},
)
