"""AlexNet: five convolutions with max pooling, then three linear layers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)
        self.conv2 = nn.Conv2d(96, 256, kernel_size=5, padding=2)
        self.conv3 = nn.Conv2d(256, 384, kernel_size=3, padding=1)
        self.conv4 = nn.Conv2d(384, 384, kernel_size=3, padding=1)
        self.conv5 = nn.Conv2d(384, 256, kernel_size=3, padding=1)
        self.fc1 = nn.Linear(256 * 6 * 6, 4096)
        self.fc2 = nn.Linear(4096, 4096)
        self.fc3 = nn.Linear(4096, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 3, stride=2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 3, stride=2)
        x = F.relu(self.conv4(F.relu(self.conv3(x))))
        x = F.max_pool2d(F.relu(self.conv5(x)), 3, stride=2)
        x = torch.flatten(x, 1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


batch_size = 1024
height = 224
width = 224
num_classes = 1000


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [num_classes]


# The linear layers need six by six features: the image cannot shrink.
PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "height": 224, "width": 224, "num_classes": 50},
    hidden={"batch_size": 3, "height": 229, "width": 241, "num_classes": 37},
)
