"""A recurrent network with tanh: the outputs of all steps."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, x, h0):
        outputs = []
        hidden = h0
        for step in x:
            hidden = torch.tanh(self.i2h(torch.cat([step, hidden], dim=1)))
            outputs.append(self.h2o(hidden))
        return torch.stack(outputs)


batch_size = 8
input_size = 1024
hidden_size = 256
output_size = 128
sequence_length = 256


def get_inputs():
    return [torch.rand(sequence_length, batch_size, input_size), torch.rand(batch_size, hidden_size)]


def get_init_inputs():
    return [input_size, hidden_size, output_size]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "input_size": 64, "hidden_size": 48, "output_size": 32, "sequence_length": 12},
    hidden={"batch_size": 3, "input_size": 37, "hidden_size": 29, "output_size": 23, "sequence_length": 7},
)
