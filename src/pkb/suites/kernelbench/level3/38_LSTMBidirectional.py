"""Six bidirectional LSTM layers and a linear layer on the last step."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size, dropout=0.0):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True, dropout=dropout, bidirectional=True)
        self.fc = nn.Linear(2 * hidden_size, output_size)

    def forward(self, x, h0, c0):
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
    return [
        torch.rand(batch_size, sequence_length, input_size),
        torch.rand(2 * num_layers, batch_size, hidden_size),
        torch.rand(2 * num_layers, batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, num_layers, output_size, dropout]


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
