"""An inverted bottleneck: expanding 1x1, depthwise and projecting 1x1 convolutions with batch norm."""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, expand_ratio):
        super().__init__()
        self.use_residual = stride == 1 and in_channels == out_channels
        wide = in_channels * expand_ratio
        if expand_ratio != 1:
            self.expand_conv = nn.Sequential(
                nn.Conv2d(in_channels, wide, kernel_size=1, bias=False),
                nn.BatchNorm2d(wide),
                nn.ReLU6(),
            )
        padding = (kernel_size - 1) // 2
        self.depthwise_conv = nn.Sequential(
            nn.Conv2d(wide, wide, kernel_size, stride=stride, padding=padding, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
        )
        self.project_conv = nn.Sequential(
            nn.Conv2d(wide, out_channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        out = self.expand_conv(x) if hasattr(self, "expand_conv") else x
        out = self.project_conv(self.depthwise_conv(out))
        return out + x if self.use_residual else out


batch_size = 10
in_channels = 112
out_channels = 192
kernel_size = 5
stride = 2
expand_ratio = 6
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, expand_ratio]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "in_channels": 16, "out_channels": 24, "height": 24, "width": 24},
    hidden={"batch_size": 3, "in_channels": 11, "out_channels": 19, "expand_ratio": 5, "height": 23, "width": 17},
    # Values on both sides of both bounds of ReLU6.
    state={"[ed]*_conv.1.weight": Normal(2.0, 0.5), "[ed]*_conv.1.bias": Normal(3.0, 1.0)},
)
