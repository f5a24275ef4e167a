"""A convolution less two constants, then Mish."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, subtract_value_1, subtract_value_2):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract_value_1 = subtract_value_1
        self.subtract_value_2 = subtract_value_2

    def forward(self, x):
        return F.mish(self.conv(x) - self.subtract_value_1 - self.subtract_value_2)


batch_size = 128
in_channels = 8
out_channels = 64
height = 256
width = 256
kernel_size = 3
subtract_value_1 = 0.5
subtract_value_2 = 0.2


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, subtract_value_1, subtract_value_2]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 8, "out_channels": 16, "height": 20, "width": 36},
    hidden={"batch_size": 3, "in_channels": 5, "out_channels": 11, "height": 19, "width": 23},
)
