"""Six GRU layers: the outputs of all steps."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers=3, bias=True, batch_first=False):
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size, num_layers, bias=bias, batch_first=batch_first, dropout=0)

    def forward(self, x, h0):
        outputs, _ = self.gru(x, h0)
        return outputs


batch_size = 10
sequence_length = 512
input_size = 128
hidden_size = 256
num_layers = 6


def get_inputs():
    return [
        torch.rand(sequence_length, batch_size, input_size),
        torch.rand(num_layers, batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, num_layers]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "sequence_length": 8, "input_size": 32, "hidden_size": 48, "num_layers": 3},
    hidden={"batch_size": 3, "sequence_length": 5, "input_size": 19, "hidden_size": 29, "num_layers": 2},
)
