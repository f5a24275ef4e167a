"""Transposed convolution of images: strided, padded, dilated."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=bias
        )

    def forward(self, x):
        return self.conv_transpose2d(x)


batch_size = 16
in_channels = 32
out_channels = 64
height = 64
width = 128
kernel_size = 3
stride = 5
padding = 1
dilation = 2


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, dilation]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 12, "out_channels": 16, "height": 7, "width": 10},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "height": 4, "width": 7},
)
