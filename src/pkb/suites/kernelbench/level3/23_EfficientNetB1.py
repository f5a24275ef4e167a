"""EfficientNet-B1 cut to seven inverted bottlenecks, without residuals or squeeze-and-excitation."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


def mbconv(in_channels, out_channels, stride, expand_ratio):
    wide = in_channels * expand_ratio
    return nn.Sequential(
        nn.Conv2d(in_channels, wide, kernel_size=1, bias=False),
        nn.BatchNorm2d(wide),
        nn.ReLU6(),
        nn.Conv2d(wide, wide, kernel_size=3, stride=stride, padding=1, groups=wide, bias=False),
        nn.BatchNorm2d(wide),
        nn.ReLU6(),
        nn.Conv2d(wide, out_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(out_channels),
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.mbconv1 = mbconv(32, 16, 1, 1)
        self.mbconv2 = mbconv(16, 24, 2, 6)
        self.mbconv3 = mbconv(24, 40, 2, 6)
        self.mbconv4 = mbconv(40, 80, 2, 6)
        self.mbconv5 = mbconv(80, 112, 1, 6)
        self.mbconv6 = mbconv(112, 192, 2, 6)
        self.mbconv7 = mbconv(192, 320, 1, 6)
        self.conv2 = nn.Conv2d(320, 1280, kernel_size=1, bias=False)
        self.bn2 = nn.BatchNorm2d(1280)
        self.fc = nn.Linear(1280, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.mbconv4(self.mbconv3(self.mbconv2(self.mbconv1(x))))
        x = self.mbconv7(self.mbconv6(self.mbconv5(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean(dim=(2, 3)))


batch_size = 10
num_classes = 1000
height = 240
width = 240


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [num_classes]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "num_classes": 100, "height": 64, "width": 64},
    hidden={"batch_size": 3, "num_classes": 61, "height": 67, "width": 75},
    # Values on both sides of both bounds of ReLU6.
    state={"mbconv*.[14].weight": Normal(2.0, 0.5), "mbconv*.bias": Normal(3.0, 1.0)},
)
EQUIVALENT = {
    f"ignore mbconv{i}.7.bias": "the batch norm after the next 1x1 convolution subtracts it" for i in range(1, 8)
}
