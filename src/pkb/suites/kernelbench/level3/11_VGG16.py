"""VGG-16: 3x3 convolutions with max pooling, then three linear layers."""

import torch
import torch.nn as nn

from pkb import ModelProblem

WIDTHS = [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"]
"""Channels of the convolutions; M is a max pooling."""


def features():
    layers = []
    channels = 3
    for out_channels in WIDTHS:
        if out_channels == "M":
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        else:
            layers += [nn.Conv2d(channels, out_channels, kernel_size=3, padding=1), nn.ReLU()]
            channels = out_channels
    return nn.Sequential(*layers)


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.features = features()
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(),
            nn.Dropout(0.0),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Dropout(0.0),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


batch_size = 10
height = 224
width = 224
num_classes = 1000


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [num_classes]


# The linear layers need seven by seven features: the image cannot shrink.
PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "num_classes": 100},
    hidden={"batch_size": 3, "height": 225, "width": 237, "num_classes": 61},
)
