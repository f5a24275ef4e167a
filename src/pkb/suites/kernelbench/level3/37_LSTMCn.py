"""The last cell states of six LSTM layers; the linear layer is never applied."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size, dropout=0.0):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True, dropout=dropout)
        self.fc = nn.Linear(hidden_size, output_size)

    def forward(self, x, h0, c0):
        _, (_, cell) = self.lstm(x, (h0, c0))
        return cell


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
        torch.rand(num_layers, batch_size, hidden_size),
        torch.rand(num_layers, batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, num_layers, output_size, dropout]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "sequence_length": 8, "input_size": 32, "hidden_size": 48, "num_layers": 3},
    hidden={"batch_size": 3, "sequence_length": 5, "input_size": 19, "hidden_size": 29, "num_layers": 2},
)
EQUIVALENT = {
    "ignore fc.weight": "the linear layer is never applied",
    "ignore fc.bias": "the linear layer is never applied",
}
