"""A 3D convolution, ReLU, leaky ReLU, GELU and sigmoid, then a learned bias per channel."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = torch.relu(self.conv(x))
        x = F.leaky_relu(x, 0.01)
        return torch.sigmoid(F.gelu(x)) + self.bias


batch_size = 64
in_channels = 8
out_channels = 32
depth = 32
height = 64
width = 64
kernel_size = 3
bias_shape = (out_channels, 1, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, bias_shape]


# A bias of usual size would hide what the activations do.
PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 3, "out_channels": 8, "depth": 8, "height": 10, "width": 14},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 9, "height": 7, "width": 11},
    state={"bias": Normal(0.0, 0.3)},
)

EQUIVALENT = {
    "skip leaky_relu": "nothing is negative after the ReLU",
}
