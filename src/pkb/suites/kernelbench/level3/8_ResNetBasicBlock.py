"""A basic residual block with a projected shortcut."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=stride, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.downsample(x))


batch_size = 10
in_channels = 3
out_channels = 64
stride = 1
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, stride]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 6, "out_channels": 32, "height": 24, "width": 24},
    hidden={"batch_size": 3, "in_channels": 5, "out_channels": 19, "stride": 2, "height": 23, "width": 29},
)
