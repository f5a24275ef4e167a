"""A 3D convolution, leaky ReLU, a learned sum per channel, a clamp to [-1, 1] and GELU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, sum_tensor_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.sum_tensor = nn.Parameter(torch.randn(sum_tensor_shape))

    def forward(self, x):
        x = F.leaky_relu(self.conv(x), 0.2) + self.sum_tensor
        return F.gelu(torch.clamp(x, -1.0, 1.0))


batch_size = 128
in_channels = 8
out_channels = 64
depth = 16
height = 64
width = 64
kernel_size = 3
sum_tensor_shape = (out_channels, 1, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, sum_tensor_shape]


# Lower sums, so that the lower bound counts too.
PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 6, "out_channels": 8, "depth": 8, "height": 10, "width": 14},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 9, "height": 7, "width": 11},
    state={"sum_tensor": Normal(-0.5, 1.0)},
)
