"""Stages of two convolutions and a max pooling under the name of RegNet; a linear layer on the mean."""

from itertools import pairwise

import torch
import torch.nn as nn

from pkb import ModelProblem


def stage(in_channels, out_channels):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
        nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
        nn.MaxPool2d(kernel_size=2, stride=2),
    )


class Model(nn.Module):
    def __init__(self, input_channels, stages, block_widths, output_classes):
        super().__init__()
        widths = [input_channels, *block_widths[:stages]]
        self.feature_extractor = nn.Sequential(*[stage(inner, outer) for inner, outer in pairwise(widths)])
        self.fc = nn.Linear(block_widths[-1], output_classes)

    def forward(self, x):
        return self.fc(self.feature_extractor(x).mean(dim=(2, 3)))


batch_size = 8
input_channels = 3
stages = 3
block_widths = [64, 128, 256]
output_classes = 10
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, input_channels, height, width)]


def get_init_inputs():
    return [input_channels, stages, block_widths, output_classes]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "block_widths": [16, 32, 48], "output_classes": 40, "height": 32, "width": 32},
    hidden={
        "batch_size": 3,
        "input_channels": 5,
        "stages": 2,
        "block_widths": [11, 23],
        "output_classes": 37,
        "height": 23,
        "width": 29,
    },
)
EQUIVALENT = {
    f"ignore feature_extractor.{i}.{conv}.bias": "the batch norm subtracts it" for i in range(stages) for conv in (0, 3)
}
