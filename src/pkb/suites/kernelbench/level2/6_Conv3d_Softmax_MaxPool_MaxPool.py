"""A 3D convolution, softmax over the channels, then max pooling twice."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.pool_kernel_size = pool_kernel_size

    def forward(self, x):
        x = torch.softmax(self.conv(x), dim=1)
        x = F.max_pool3d(x, self.pool_kernel_size)
        return F.max_pool3d(x, self.pool_kernel_size)


batch_size = 128
in_channels = 3
out_channels = 16
depth = 16
height = 32
width = 32
kernel_size = 3
pool_kernel_size = 2


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, pool_kernel_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 3, "out_channels": 8, "depth": 14, "height": 14, "width": 18},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 11, "height": 15, "width": 13},
)
