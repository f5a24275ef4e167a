"""A dense block: each layer sees the features of all before it and appends its own."""

import torch
import torch.nn as nn

from pkb import ModelProblem


def dense_layer(channels, growth_rate):
    return nn.Sequential(
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, growth_rate, kernel_size=3, padding=1, bias=False),
        nn.Dropout(0.0),
    )


class Model(nn.Module):
    def __init__(self, num_layers, num_input_features, growth_rate):
        super().__init__()
        self.layers = nn.ModuleList(
            dense_layer(num_input_features + i * growth_rate, growth_rate) for i in range(num_layers)
        )

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return x


batch_size = 10
num_layers = 6
num_input_features = 32
growth_rate = 32
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, num_input_features, height, width)]


def get_init_inputs():
    return [num_layers, num_input_features, growth_rate]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "num_layers": 4, "num_input_features": 24, "growth_rate": 16, "height": 16, "width": 16},
    hidden={"batch_size": 3, "num_layers": 5, "num_input_features": 13, "growth_rate": 7, "height": 17, "width": 11},
)
