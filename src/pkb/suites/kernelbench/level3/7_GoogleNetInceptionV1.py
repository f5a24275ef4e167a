"""GoogLeNet: a convolutional stem and nine inception modules, which hold no activations."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class InceptionModule(nn.Module):
    def __init__(self, in_channels, out_1x1, reduce_3x3, out_3x3, reduce_5x5, out_5x5, pool_proj):
        super().__init__()
        self.branch1x1 = nn.Conv2d(in_channels, out_1x1, kernel_size=1)
        self.branch3x3 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_3x3, kernel_size=1),
            nn.Conv2d(reduce_3x3, out_3x3, kernel_size=3, padding=1),
        )
        self.branch5x5 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_5x5, kernel_size=1),
            nn.Conv2d(reduce_5x5, out_5x5, kernel_size=5, padding=2),
        )
        self.branch_pool = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1),
            nn.Conv2d(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x):
        branches = (self.branch1x1, self.branch3x3, self.branch5x5, self.branch_pool)
        return torch.cat([branch(x) for branch in branches], dim=1)


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3)
        self.conv2 = nn.Conv2d(64, 64, kernel_size=1)
        self.conv3 = nn.Conv2d(64, 192, kernel_size=3, padding=1)
        self.inception3a = InceptionModule(192, 64, 96, 128, 16, 32, 32)
        self.inception3b = InceptionModule(256, 128, 128, 192, 32, 96, 64)
        self.inception4a = InceptionModule(480, 192, 96, 208, 16, 48, 64)
        self.inception4b = InceptionModule(512, 160, 112, 224, 24, 64, 64)
        self.inception4c = InceptionModule(512, 128, 128, 256, 24, 64, 64)
        self.inception4d = InceptionModule(512, 112, 144, 288, 32, 64, 64)
        self.inception4e = InceptionModule(528, 256, 160, 320, 32, 128, 128)
        self.inception5a = InceptionModule(832, 256, 160, 320, 32, 128, 128)
        self.inception5b = InceptionModule(832, 384, 192, 384, 48, 128, 128)
        self.fc = nn.Linear(1024, num_classes)

    def forward(self, x):
        x = halve(F.relu(self.conv1(x)))
        x = F.relu(self.conv3(F.relu(self.conv2(x))))
        x = self.inception3b(self.inception3a(halve(x)))
        x = self.inception4c(self.inception4b(self.inception4a(halve(x))))
        x = self.inception4e(self.inception4d(x))
        x = self.inception5b(self.inception5a(halve(x)))
        return self.fc(x.mean(dim=(2, 3)))


def halve(x):
    return F.max_pool2d(x, kernel_size=3, stride=2, padding=1)


batch_size = 10
height = 224
width = 224
num_classes = 1000


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [num_classes]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "height": 64, "width": 64, "num_classes": 100},
    hidden={"batch_size": 3, "height": 67, "width": 45, "num_classes": 61},
    # Without activations the signal grows from module to module; the biases grow with it.
    state={"inception[45]*.bias": Normal(0.0, 5.0), "fc.bias": Normal(0.0, 50.0)},
)
