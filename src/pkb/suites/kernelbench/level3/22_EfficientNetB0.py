"""EfficientNet-B0 with ReLU6 in place of swish and without squeeze-and-excitation."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal

# in channels, out channels, kernel size, stride, expansion
BLOCKS = [
    (32, 16, 3, 1, 1),
    (16, 24, 3, 2, 6),
    (24, 24, 3, 1, 6),
    (24, 40, 5, 2, 6),
    (40, 40, 5, 1, 6),
    (40, 80, 3, 2, 6),
    (80, 80, 3, 1, 6),
    (80, 112, 5, 1, 6),
    (112, 112, 5, 1, 6),
    (112, 192, 5, 2, 6),
    (192, 192, 5, 1, 6),
    (192, 192, 5, 1, 6),
    (192, 320, 3, 1, 6),
]


class MBConv(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, expand_ratio):
        super().__init__()
        self.use_residual = stride == 1 and in_channels == out_channels
        wide = in_channels * expand_ratio
        if expand_ratio != 1:
            self.expand_conv = nn.Sequential(
                nn.Conv2d(in_channels, wide, kernel_size=1, bias=False),
                nn.BatchNorm2d(wide),
                nn.ReLU6(),
            )
        padding = (kernel_size - 1) // 2
        self.depthwise_conv = nn.Sequential(
            nn.Conv2d(wide, wide, kernel_size, stride=stride, padding=padding, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
        )
        self.project_conv = nn.Sequential(
            nn.Conv2d(wide, out_channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        out = self.expand_conv(x) if hasattr(self, "expand_conv") else x
        out = self.project_conv(self.depthwise_conv(out))
        return out + x if self.use_residual else out


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.blocks = nn.Sequential(*[MBConv(*block) for block in BLOCKS])
        self.conv2 = nn.Conv2d(320, 1280, kernel_size=1, bias=False)
        self.bn2 = nn.BatchNorm2d(1280)
        self.fc = nn.Linear(1280, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(self.blocks(x))))
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
    tiny={"batch_size": 4, "num_classes": 100, "height": 64, "width": 64},
    hidden={"batch_size": 3, "num_classes": 61, "height": 67, "width": 75},
    # Values on both sides of both bounds of ReLU6.
    state={"blocks.*_conv.1.weight": Normal(2.0, 0.5), "blocks.*.bias": Normal(3.0, 1.0)},
)
EQUIVALENT = {
    f"ignore blocks.{i}.project_conv.1.bias": "the batch norm after the next 1x1 convolution subtracts it"
    for i in range(len(BLOCKS))
}
