"""Convolution of every channel of images by itself with a wide kernel; out_channels and groups are not used."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size_h,
        kernel_size_w,
        stride_h=1,
        stride_w=1,
        padding_h=0,
        padding_w=0,
        dilation_h=1,
        dilation_w=1,
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels,
            in_channels,
            (kernel_size_h, kernel_size_w),
            stride=(stride_h, stride_w),
            padding=(padding_h, padding_w),
            dilation=(dilation_h, dilation_w),
            groups=in_channels,
            bias=bias,
        )

    def forward(self, x):
        return self.conv2d(x)


batch_size = 32
in_channels = 128
out_channels = in_channels
height = 128
width = 256
kernel_size_h = 3
kernel_size_w = 7
stride_h = 1
stride_w = 1
padding_h = 0
padding_w = 0
dilation_h = 1
dilation_w = 1
groups = in_channels


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size_h,
        kernel_size_w,
        stride_h,
        stride_w,
        padding_h,
        padding_w,
        dilation_h,
        dilation_w,
        groups,
    ]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 16, "height": 16, "width": 24},
    hidden={"batch_size": 3, "in_channels": 7, "height": 11, "width": 17},
)
