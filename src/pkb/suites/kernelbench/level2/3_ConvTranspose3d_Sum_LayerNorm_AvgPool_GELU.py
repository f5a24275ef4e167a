"""A transposed 3D convolution plus a learned scalar, layer normalisation, average pooling and GELU.

The layer normalisation acts on the width, not on the channels.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        sum_weight,
        norm_shape,
        pool_kernel_size,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )
        self.sum_weight = nn.Parameter(torch.tensor(sum_weight))
        self.norm = nn.LayerNorm(norm_shape)
        self.pool_kernel_size = pool_kernel_size

    def forward(self, x):
        x = self.norm(self.conv_transpose(x) + self.sum_weight)
        return F.gelu(F.avg_pool3d(x, self.pool_kernel_size))


batch_size = 32
in_channels = 32
out_channels = 64
depth = 16
height = 32
width = 32
kernel_size = (3, 3, 3)
stride = (2, 2, 2)
padding = (1, 1, 1)
output_padding = (1, 1, 1)
sum_weight = 1.0
norm_shape = (2 * width,)
pool_kernel_size = (2, 2, 2)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        sum_weight,
        norm_shape,
        pool_kernel_size,
    ]


PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 6, "out_channels": 8, "depth": 4, "height": 6, "width": 8},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 7, "depth": 5, "height": 3, "width": 7},
)

EQUIVALENT = {
    "ignore conv_transpose.bias": "constant along the width, so the layer norm subtracts it",
    "ignore sum_weight": "constant along the width, so the layer norm subtracts it",
    "skip add 1": "what is added is constant along the width, so the layer norm subtracts it",
}
