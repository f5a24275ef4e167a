"""ResNet-101: bottleneck blocks in four stages."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, in_channels, channels, stride, project):
        super().__init__()
        out_channels = self.expansion * channels
        # Drawn first, as in the published file; the state dict has it last.
        downsample = None
        if project:
            downsample = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )
        self.conv1 = nn.Conv2d(in_channels, channels, kernel_size=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, out_channels, kernel_size=1, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.downsample = downsample

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        return F.relu(self.bn3(self.conv3(out)) + shortcut)


def stage(in_channels, channels, blocks, stride):
    out_channels = Bottleneck.expansion * channels
    first = Bottleneck(in_channels, channels, stride, project=True)
    return nn.Sequential(first, *[Bottleneck(out_channels, channels, 1, project=False) for _ in range(blocks - 1)])


class Model(nn.Module):
    def __init__(self, layers, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = stage(64, 64, layers[0], stride=1)
        self.layer2 = stage(256, 128, layers[1], stride=2)
        self.layer3 = stage(512, 256, layers[2], stride=2)
        self.layer4 = stage(1024, 512, layers[3], stride=2)
        self.fc = nn.Linear(2048, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean(dim=(2, 3)))


batch_size = 10
height = 224
width = 224
layers = [3, 4, 23, 3]
num_classes = 1000


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [layers, num_classes]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "height": 64, "width": 64, "layers": [2, 2, 3, 2], "num_classes": 100},
    hidden={"batch_size": 3, "height": 67, "width": 49, "layers": [1, 3, 2, 2], "num_classes": 61},
)
