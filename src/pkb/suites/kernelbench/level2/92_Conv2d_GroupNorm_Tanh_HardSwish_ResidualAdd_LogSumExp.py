"""A convolution c, group normalisation, tanh and hard swish of it, plus c, and the logsumexp over the channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups, eps=1e-5):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(groups, out_channels, eps=eps)

    def forward(self, x):
        x = self.conv(x)
        x = x + F.hardswish(torch.tanh(self.group_norm(x)))
        return torch.logsumexp(x, dim=1, keepdim=True)


batch_size = 128
in_channels = 8
out_channels = 64
height = 128
width = 128
kernel_size = 3
groups = 16


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, groups]


# Weights that differ more, because the logsumexp hides small differences.
PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 8, "out_channels": 16, "height": 20, "width": 36, "groups": 4},
    hidden={"batch_size": 3, "in_channels": 5, "out_channels": 15, "height": 19, "width": 23, "groups": 5},
    state={"group_norm.*": Normal(0.5, 1.0)},
)
