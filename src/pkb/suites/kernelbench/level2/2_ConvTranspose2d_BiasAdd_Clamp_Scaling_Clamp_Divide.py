"""A transposed convolution plus a bias per channel, clamped to [0, 1], scaled, clamped again and scaled back."""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape, scaling_factor
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = torch.clamp(self.conv_transpose(x) + self.bias, 0.0, 1.0)
        x = torch.clamp(x * self.scaling_factor, 0.0, 1.0)
        return x / self.scaling_factor


batch_size = 128
in_channels = 64
out_channels = 64
height = 128
width = 128
kernel_size = 3
stride = 2
padding = 1
output_padding = 1
bias_shape = (out_channels, 1, 1)
scaling_factor = 2.0


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape, scaling_factor]


def inputs(case):
    # Small values, so that many results lie between the bounds.
    return [case.randn(batch_size, in_channels, height, width, scale=0.25)]


# The first clamp shows where the factor is below one, the second where it is above.
PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "in_channels": 8, "out_channels": 16, "height": 12, "width": 20, "scaling_factor": 1.5},
    hidden={"batch_size": 3, "in_channels": 5, "out_channels": 11, "height": 11, "width": 13, "scaling_factor": 0.8},
    state={"*bias": Normal(0.2, 0.2)},
)

EQUIVALENT = {
    "skip clamp 2": "the second clamp, of values twice as large, bounds more",
}
