"""A 3D convolution, group normalisation, a minimum and a clamp that leave one value, and dropout: always zero."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups, min_value, max_value, dropout_p):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.norm = nn.GroupNorm(groups, out_channels)
        self.min_value = min_value
        self.max_value = max_value
        self.dropout_p = dropout_p

    def forward(self, x):
        x = torch.clamp(self.norm(self.conv(x)), max=self.min_value)
        x = torch.clamp(x, self.min_value, self.max_value)
        return F.dropout(x, self.dropout_p, self.training)


batch_size = 128
in_channels = 3
out_channels = 16
depth = 16
height = 64
width = 64
kernel_size = 3
groups = 8
min_value = 0.0
max_value = 1.0
dropout_p = 0.2


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, groups, min_value, max_value, dropout_p]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 3,
        "in_channels": 3,
        "out_channels": 8,
        "depth": 8,
        "height": 10,
        "width": 14,
        "groups": 4,
        "dropout_p": 0.0,
    },
    hidden={
        "batch_size": 2,
        "in_channels": 5,
        "out_channels": 9,
        "depth": 9,
        "height": 7,
        "width": 11,
        "groups": 3,
        "dropout_p": 0.0,
    },
    degenerate="no value exceeds the minimum with min_value, and none falls below the clamp at it: always 0",
)
