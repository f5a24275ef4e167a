"""A multilayer perceptron: linear layers with ReLU between them."""

from itertools import pairwise

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, layer_sizes, output_size):
        super().__init__()
        layers = []
        for inner, outer in pairwise([input_size, *layer_sizes]):
            layers += [nn.Linear(inner, outer), nn.ReLU()]
        self.network = nn.Sequential(*layers, nn.Linear(layer_sizes[-1], output_size))

    def forward(self, x):
        return self.network(x)


batch_size = 128
input_size = 16384
layer_sizes = [16384, 16384]
output_size = 8192


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, layer_sizes, output_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 16, "input_size": 96, "layer_sizes": [128, 112], "output_size": 80},
    hidden={"batch_size": 7, "input_size": 61, "layer_sizes": [83, 59, 47], "output_size": 53},
)
