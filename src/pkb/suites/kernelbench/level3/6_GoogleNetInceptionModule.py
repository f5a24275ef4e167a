"""An inception module: four branches of convolutions side by side, without activations."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_1x1, reduce_3x3, out_3x3, reduce_5x5, out_5x5, pool_proj):
        super().__init__()
        self.branch1x1 = nn.Conv2d(in_channels, out_1x1, kernel_size=1)
        self.branch3x3 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_3x3, kernel_size=1),
            nn.Conv2d(reduce_3x3, out_3x3, kernel_size=3, padding=1),
        )
        self.branch5x5 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_5x5, kernel_size=1),
            nn.Conv2d(reduce_5x5, out_5x5, kernel_size=5, padding=2),
        )
        self.branch_pool = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1),
            nn.Conv2d(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x):
        branches = (self.branch1x1, self.branch3x3, self.branch5x5, self.branch_pool)
        return torch.cat([branch(x) for branch in branches], dim=1)


batch_size = 10
in_channels = 480
out_1x1 = 192
reduce_3x3 = 96
out_3x3 = 208
reduce_5x5 = 16
out_5x5 = 48
pool_proj = 64
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_1x1, reduce_3x3, out_3x3, reduce_5x5, out_5x5, pool_proj]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 2,
        "in_channels": 48,
        "out_1x1": 24,
        "reduce_3x3": 16,
        "out_3x3": 32,
        "reduce_5x5": 8,
        "out_5x5": 16,
        "pool_proj": 16,
        "height": 20,
        "width": 20,
    },
    hidden={
        "batch_size": 3,
        "in_channels": 29,
        "out_1x1": 19,
        "reduce_3x3": 11,
        "out_3x3": 23,
        "reduce_5x5": 5,
        "out_5x5": 13,
        "pool_proj": 7,
        "height": 17,
        "width": 13,
    },
)
