"""Two linear layers with a sigmoid between them, then the logsumexp over the outputs."""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.linear1 = nn.Linear(input_size, hidden_size)
        self.linear2 = nn.Linear(hidden_size, output_size)

    def forward(self, x):
        x = torch.sigmoid(self.linear1(x))
        return torch.logsumexp(self.linear2(x), dim=1)


batch_size = 16384
input_size = 2048
hidden_size = 4096
output_size = 1024


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, output_size]


# Larger weights, because few differences outlast a sigmoid and a logsumexp.
PROBLEM = ModelProblem(
    tiny={"batch_size": 80, "input_size": 64, "hidden_size": 96, "output_size": 40},
    hidden={"batch_size": 67, "input_size": 53, "hidden_size": 71, "output_size": 29},
    state={"linear2.weight": Normal(0.0, 0.6)},
)
