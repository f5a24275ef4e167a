"""A ShuffleNet unit: grouped 1x1 convolutions with a channel shuffle between them, plus a shortcut."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


def shuffle(x, groups):
    """Deal the channels of each group out to all groups."""
    batch, channels, height, width = x.shape
    return x.view(batch, groups, channels // groups, height, width).transpose(1, 2).reshape(x.shape)


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, groups=3):
        super().__init__()
        self.groups = groups
        mid = out_channels // 4
        self.conv1 = nn.Conv2d(in_channels, mid, kernel_size=1, groups=groups, bias=False)
        self.bn1 = nn.BatchNorm2d(mid)
        self.conv2 = nn.Conv2d(mid, mid, kernel_size=3, padding=1, groups=mid, bias=False)
        self.bn2 = nn.BatchNorm2d(mid)
        self.conv3 = nn.Conv2d(mid, out_channels, kernel_size=1, groups=groups, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Sequential()
        if in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = shuffle(self.bn2(self.conv2(out)), self.groups)
        return F.relu(self.bn3(self.conv3(out))) + self.shortcut(x)


batch_size = 10
in_channels = 240
out_channels = 480
groups = 3
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, groups]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "in_channels": 24, "out_channels": 48, "height": 16, "width": 16},
    hidden={"batch_size": 3, "in_channels": 35, "out_channels": 60, "groups": 5, "height": 13, "width": 17},
)
EQUIVALENT = {"ignore bn2.bias": "the batch norm after the next 1x1 convolution subtracts it"}
