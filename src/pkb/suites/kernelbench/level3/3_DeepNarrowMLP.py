"""A multilayer perceptron with sixteen narrow hidden layers and ReLU."""

from itertools import pairwise

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, hidden_layer_sizes, output_size):
        super().__init__()
        layers = []
        for inner, outer in pairwise([input_size, *hidden_layer_sizes]):
            layers += [nn.Linear(inner, outer), nn.ReLU()]
        self.network = nn.Sequential(*layers, nn.Linear(hidden_layer_sizes[-1], output_size))

    def forward(self, x):
        return self.network(x)


batch_size = 1024
input_size = 8192
hidden_width = 1024
hidden_layers = 16
hidden_layer_sizes = [hidden_width] * hidden_layers
output_size = 8192


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_layer_sizes, output_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 16, "input_size": 96, "hidden_width": 64, "output_size": 80},
    hidden={"batch_size": 7, "input_size": 61, "hidden_width": 53, "hidden_layers": 11, "output_size": 47},
)
