"""One step of a recurrent cell with tanh, and its output layer.

The cell keeps its last hidden state for calls without one; with one given, as here, no call depends on those before.
"""

import torch
import torch.nn as nn

from pkb import ModelProblem

batch_size = 256
input_size = 16384
hidden_size = 16384
output_size = 8192


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden = torch.randn(batch_size, hidden_size)
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, x, initial_hidden=None):
        hidden = self.hidden if initial_hidden is None else initial_hidden
        self.hidden = torch.tanh(self.i2h(torch.cat([x, hidden.to(x.device)], dim=1)))
        return self.h2o(self.hidden)


def get_inputs():
    return [torch.rand(batch_size, input_size), torch.rand(batch_size, hidden_size)]


def get_init_inputs():
    return [input_size, hidden_size, output_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 16, "input_size": 96, "hidden_size": 128, "output_size": 80},
    hidden={"batch_size": 7, "input_size": 61, "hidden_size": 83, "output_size": 53},
)
