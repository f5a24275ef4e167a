"""A linear layer, group normalisation and leaky ReLU, added to itself."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_groups, eps=1e-5, negative_slope=0.01):
        super().__init__()
        self.fc = nn.Linear(input_size, hidden_size)
        self.gn = nn.GroupNorm(num_groups, hidden_size, eps=eps)
        self.negative_slope = negative_slope

    def forward(self, x):
        x = F.leaky_relu(self.gn(self.fc(x)), self.negative_slope)
        return x + x


batch_size = 1024
input_size = 8192
hidden_size = 8192
num_groups = 512


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, num_groups]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "input_size": 160, "hidden_size": 192, "num_groups": 12},
    hidden={"batch_size": 37, "input_size": 131, "hidden_size": 104, "num_groups": 8},
)
