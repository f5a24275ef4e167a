"""MobileNet V2's inverted bottlenecks in one chain, without residual connections."""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal

# out channels, stride, expansion
BLOCKS = [
    (16, 1, 1),
    (24, 2, 6),
    (24, 1, 6),
    (32, 2, 6),
    (32, 1, 6),
    (32, 1, 6),
    (64, 2, 6),
    (64, 1, 6),
    (64, 1, 6),
    (64, 1, 6),
    (96, 1, 6),
    (96, 1, 6),
    (96, 1, 6),
    (160, 2, 6),
    (160, 1, 6),
    (160, 1, 6),
    (320, 1, 6),
]


def inverted_bottleneck(in_channels, out_channels, stride, expansion):
    wide = in_channels * expansion
    expand = []
    if expansion != 1:
        # Drawn only where it is used, as in the published file: what follows draws after it.
        expand = [nn.Conv2d(in_channels, wide, kernel_size=1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
    return nn.Sequential(
        *expand,
        nn.Conv2d(wide, wide, kernel_size=3, stride=stride, padding=1, groups=wide, bias=False),
        nn.BatchNorm2d(wide),
        nn.ReLU6(),
        nn.Conv2d(wide, out_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(out_channels),
    )


def initialise(module):
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out")
    elif isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0.0, 0.01)
        nn.init.zeros_(module.bias)


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        features = [nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
        channels = 32
        for out_channels, stride, expansion in BLOCKS:
            features.append(inverted_bottleneck(channels, out_channels, stride, expansion))
            channels = out_channels
        features += [nn.Conv2d(channels, 1280, kernel_size=1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
        self.features = nn.Sequential(*features, nn.AdaptiveAvgPool2d((1, 1)))
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(1280, num_classes))
        for module in self.modules():
            initialise(module)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


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
    state={"features.*[14].weight": Normal(2.0, 0.5), "features.*.bias": Normal(3.0, 1.0)},
)
EQUIVALENT = {
    f"ignore features.{i}.{4 if i == 3 else 7}.bias": "the batch norm after the next 1x1 convolution subtracts it"
    for i in range(3, 3 + len(BLOCKS))
}
