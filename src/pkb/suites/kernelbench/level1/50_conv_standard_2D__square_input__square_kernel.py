"""First convolution of AlexNet: 11 x 11, stride 4, with a bias; num_classes is not used."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        return self.conv1(x)


batch_size = 256
size = 224
num_classes = 1000


def get_inputs():
    return [torch.rand(batch_size, 3, size, size)]


def get_init_inputs():
    return [num_classes]


PROBLEM = ModelProblem(tiny={"batch_size": 4, "size": 64}, hidden={"batch_size": 3, "size": 53})
