"""Six LSTM layers and a linear layer on the last step; states that are not given are drawn in the call."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size, dropout=0.0):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True, dropout=dropout)
        self.fc = nn.Linear(hidden_size, output_size)

    def forward(self, x, h0=None, c0=None):
        shape = (self.lstm.num_layers, len(x), self.lstm.hidden_size)
        h0 = torch.randn(shape, dtype=x.dtype, device=x.device) if h0 is None else h0
        c0 = torch.randn(shape, dtype=x.dtype, device=x.device) if c0 is None else c0
        outputs, _ = self.lstm(x, (h0, c0))
        return self.fc(outputs[:, -1])


batch_size = 10
sequence_length = 512
input_size = 128
hidden_size = 256
num_layers = 6
output_size = 10
dropout = 0.0


def get_inputs():
    return [torch.rand(batch_size, sequence_length, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, num_layers, output_size, dropout]


def inputs(case):
    """With the states given, nothing is left to the generator of the call."""
    state = (num_layers, batch_size, hidden_size)
    return [case.randn(batch_size, sequence_length, input_size), case.randn(*state), case.randn(*state)]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 4,
        "sequence_length": 8,
        "input_size": 32,
        "hidden_size": 48,
        "num_layers": 3,
        "output_size": 20,
    },
    hidden={
        "batch_size": 3,
        "sequence_length": 5,
        "input_size": 19,
        "hidden_size": 29,
        "num_layers": 2,
        "output_size": 13,
    },
)
