"""MobileNet V1: depthwise separable convolutions, each followed by batch norm and ReLU."""

import torch
import torch.nn as nn

from pkb import ModelProblem


def convolution(in_channels, out_channels, stride):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


def separable(in_channels, out_channels, stride):
    return nn.Sequential(
        nn.Conv2d(in_channels, in_channels, kernel_size=3, stride=stride, padding=1, groups=in_channels, bias=False),
        nn.BatchNorm2d(in_channels),
        nn.ReLU(),
        nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000, input_channels=3, alpha=1.0):
        super().__init__()

        def wide(channels):
            return int(channels * alpha)

        self.model = nn.Sequential(
            convolution(input_channels, wide(32), 2),
            separable(wide(32), wide(64), 1),
            separable(wide(64), wide(128), 2),
            separable(wide(128), wide(128), 1),
            separable(wide(128), wide(256), 2),
            separable(wide(256), wide(256), 1),
            separable(wide(256), wide(512), 2),
            *[separable(wide(512), wide(512), 1) for _ in range(5)],
            separable(wide(512), wide(1024), 2),
            separable(wide(1024), wide(1024), 1),
            nn.AvgPool2d(7),
        )
        self.fc = nn.Linear(wide(1024), num_classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.model(x), 1))


batch_size = 10
num_classes = 1000
input_channels = 3
alpha = 1.0
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, input_channels, height, width)]


def get_init_inputs():
    return [num_classes, input_channels, alpha]


# The average pooling needs seven by seven features: the image can hardly shrink.
PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "num_classes": 100, "alpha": 0.25, "height": 200, "width": 200},
    hidden={"batch_size": 3, "num_classes": 61, "input_channels": 2, "alpha": 0.2, "height": 201, "width": 193},
)
