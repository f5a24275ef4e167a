"""A transposed convolution and Mish, plus a constant, clamped to [-1, 1] and scaled."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, add_value, scale):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )
        self.add_value = add_value
        self.scale = scale

    def forward(self, x):
        x = F.mish(self.conv_transpose(x)) + self.add_value
        return F.hardtanh(x, min_val=-1.0, max_val=1.0) * self.scale


batch_size = 128
in_channels = 64
out_channels = 64
height = 128
width = 128
kernel_size = 3
stride = 2
padding = 1
output_padding = 1
add_value = 0.5
scale = 2


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, add_value, scale]


# Mish stays above -0.31: the lower bound is met only after a negative constant.
PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 8, "out_channels": 16, "height": 12, "width": 20, "add_value": -0.9},
    hidden={
        "batch_size": 3,
        "in_channels": 5,
        "out_channels": 11,
        "height": 11,
        "width": 13,
        "add_value": -0.8,
        "scale": 3,
    },
)
