"""ShuffleNet without strides inside its stages."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


def shuffle(x, groups):
    """Deal the channels of each group out to all groups."""
    batch, channels, height, width = x.shape
    return x.view(batch, groups, channels // groups, height, width).transpose(1, 2).reshape(x.shape)


class ShuffleNetUnit(nn.Module):
    def __init__(self, in_channels, out_channels, groups):
        super().__init__()
        self.groups = groups
        mid = out_channels // 4
        self.conv1 = nn.Conv2d(in_channels, mid, kernel_size=1, groups=groups, bias=False)
        self.bn1 = nn.BatchNorm2d(mid)
        self.conv2 = nn.Conv2d(mid, mid, kernel_size=3, padding=1, groups=mid, bias=False)
        self.bn2 = nn.BatchNorm2d(mid)
        self.conv3 = nn.Conv2d(mid, out_channels, kernel_size=1, groups=groups, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Sequential()
        if in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = shuffle(self.bn2(self.conv2(out)), self.groups)
        return F.relu(self.bn3(self.conv3(out))) + self.shortcut(x)


def stage(in_channels, out_channels, repeats, groups):
    first = ShuffleNetUnit(in_channels, out_channels, groups)
    return nn.Sequential(first, *[ShuffleNetUnit(out_channels, out_channels, groups) for _ in range(repeats - 1)])


class Model(nn.Module):
    def __init__(self, num_classes=1000, groups=3, stages_repeats=(3, 7, 3), stages_out_channels=(24, 240, 480, 960)):
        super().__init__()
        first, second, third, fourth = stages_out_channels
        self.conv1 = nn.Conv2d(3, first, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.stage2 = stage(first, second, stages_repeats[0], groups)
        self.stage3 = stage(second, third, stages_repeats[1], groups)
        self.stage4 = stage(third, fourth, stages_repeats[2], groups)
        self.conv5 = nn.Conv2d(fourth, 1024, kernel_size=1, bias=False)
        self.bn5 = nn.BatchNorm2d(1024)
        self.fc = nn.Linear(1024, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        x = self.stage4(self.stage3(self.stage2(x)))
        x = F.relu(self.bn5(self.conv5(x)))
        return self.fc(x.mean(dim=(2, 3)))


batch_size = 10
num_classes = 1000
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [num_classes]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "num_classes": 100, "height": 32, "width": 32},
    hidden={"batch_size": 3, "num_classes": 61, "height": 29, "width": 21},
)
UNITS = {"stage2": 3, "stage3": 7, "stage4": 3}
EQUIVALENT = {
    f"ignore {name}.{bias}": "batch norms after the next 1x1 convolutions subtract it"
    for name, units in UNITS.items()
    for bias in [*(f"{i}.bn2.bias" for i in range(units)), "0.shortcut.1.bias"]
}
