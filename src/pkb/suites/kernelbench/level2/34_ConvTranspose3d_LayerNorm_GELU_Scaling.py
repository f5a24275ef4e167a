"""A transposed 3D convolution, layer normalisation, GELU and a scale.

The layer normalisation acts on the width, which is as long as there are channels.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, bias=True, eps=1e-5, scaling_factor=1.0
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=bias
        )
        self.layer_norm = nn.LayerNorm(out_channels, eps=eps)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.layer_norm(self.conv_transpose(x))
        return F.gelu(x) * self.scaling_factor


batch_size = 32
in_channels = 32
out_channels = 64
depth = 16
height = 32
width = out_channels // 2
kernel_size = 4
stride = 2
padding = 1
bias = True
eps = 1e-5
scaling_factor = 1.0


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, bias, eps, scaling_factor]


# A factor other than one.
PROBLEM = ModelProblem(
    tiny={"batch_size": 3, "in_channels": 6, "out_channels": 16, "depth": 4, "height": 6, "scaling_factor": 1.5},
    hidden={"batch_size": 2, "in_channels": 5, "out_channels": 14, "depth": 5, "height": 3, "scaling_factor": 0.5},
)

EQUIVALENT = {"ignore conv_transpose.bias": "constant along the width, so the layer norm subtracts it"}
