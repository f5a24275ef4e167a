"""A transition layer of DenseNet: batch norm, ReLU, 1x1 convolution and average pooling."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.transition = nn.Sequential(
            nn.BatchNorm2d(num_input_features),
            nn.ReLU(),
            nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False),
            nn.AvgPool2d(kernel_size=2, stride=2),
        )

    def forward(self, x):
        return self.transition(x)


batch_size = 128
num_input_features = 32
num_output_features = 64
height = 256
width = 256


def get_inputs():
    return [torch.rand(batch_size, num_input_features, height, width)]


def get_init_inputs():
    return [num_input_features, num_output_features]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "num_output_features": 48, "height": 24, "width": 24},
    hidden={"batch_size": 3, "num_input_features": 19, "num_output_features": 37, "height": 23, "width": 29},
)
