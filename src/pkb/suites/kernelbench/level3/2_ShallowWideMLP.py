"""A multilayer perceptron with two wide hidden layers and ReLU."""

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


batch_size = 128
input_size = 16384
hidden_layer_sizes = [32768, 32768]
output_size = 16384


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_layer_sizes, output_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 16, "input_size": 96, "hidden_layer_sizes": [256, 192], "output_size": 96},
    hidden={"batch_size": 5, "input_size": 67, "hidden_layer_sizes": [149, 173], "output_size": 71},
)
