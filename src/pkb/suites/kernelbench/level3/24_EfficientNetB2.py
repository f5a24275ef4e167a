"""EfficientNet-B2's blocks with squeeze-and-excitation in series: no gating product, the map shrinks to 1x1."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


def mbconv(in_channels, out_channels, stride, expand_ratio):
    wide = in_channels * expand_ratio
    expand = [nn.Conv2d(in_channels, wide, kernel_size=1, bias=False), nn.BatchNorm2d(wide), nn.ReLU()]
    return nn.Sequential(
        *(expand if expand_ratio != 1 else []),
        nn.Conv2d(wide, wide, kernel_size=3, stride=stride, padding=1, groups=wide, bias=False),
        nn.BatchNorm2d(wide),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Conv2d(wide, wide // 4, kernel_size=1, bias=False),
        nn.ReLU(),
        nn.Conv2d(wide // 4, wide, kernel_size=1, bias=False),
        nn.Sigmoid(),
        nn.Conv2d(wide, out_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(out_channels),
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.mbconv1 = mbconv(32, 96, 1, 3)
        self.mbconv2 = mbconv(96, 144, 2, 6)
        self.mbconv3 = mbconv(144, 192, 2, 6)
        self.mbconv4 = mbconv(192, 288, 2, 6)
        self.mbconv5 = mbconv(288, 384, 1, 6)
        self.conv_final = nn.Conv2d(384, 1408, kernel_size=1, bias=False)
        self.bn_final = nn.BatchNorm2d(1408)
        self.fc = nn.Linear(1408, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.mbconv5(self.mbconv4(self.mbconv3(self.mbconv2(self.mbconv1(x)))))
        x = F.relu(self.bn_final(self.conv_final(x)))
        return self.fc(x.mean(dim=(2, 3)))


batch_size = 2
num_classes = 1000
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [num_classes]


# Batch norm sees as many values as there are images: more of them than published.
PROBLEM = ModelProblem(
    tiny={"batch_size": 16, "num_classes": 100, "height": 12, "width": 12},
    hidden={"batch_size": 11, "num_classes": 61, "height": 13, "width": 11},
    # With ReLU near its kink everywhere, rounding errors grow from layer to layer.
    state={"mbconv*.bias": Normal(2.0, 0.5), "bn*.bias": Normal(2.0, 0.5)},
)
EQUIVALENT = {
    f"ignore mbconv{i}.12.bias": "the batch norm after the next 1x1 convolution subtracts it" for i in range(1, 6)
} | {"skip adaptive_avg_pool2d": "from the second block on there is one value to average"}
