"""A fire module: a squeezing 1x1 convolution, then 1x1 and 3x3 convolutions side by side."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, squeeze_channels, expand1x1_channels, expand3x3_channels):
        super().__init__()
        self.squeeze = nn.Conv2d(in_channels, squeeze_channels, kernel_size=1)
        self.expand1x1 = nn.Conv2d(squeeze_channels, expand1x1_channels, kernel_size=1)
        self.expand3x3 = nn.Conv2d(squeeze_channels, expand3x3_channels, kernel_size=3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.expand1x1(x)), F.relu(self.expand3x3(x))], dim=1)


batch_size = 128
in_channels = 3
squeeze_channels = 6
expand1x1_channels = 64
expand3x3_channels = 64
height = 256
width = 256


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, squeeze_channels, expand1x1_channels, expand3x3_channels]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "expand1x1_channels": 24, "expand3x3_channels": 32, "height": 24, "width": 24},
    hidden={
        "batch_size": 2,
        "in_channels": 5,
        "squeeze_channels": 7,
        "expand1x1_channels": 19,
        "expand3x3_channels": 13,
        "height": 23,
        "width": 29,
    },
)
