"""A linear layer and sigmoid, summed over the outputs."""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.linear = nn.Linear(input_size, hidden_size)

    def forward(self, x):
        return torch.sum(torch.sigmoid(self.linear(x)), dim=1, keepdim=True)


batch_size = 128
input_size = 32768
hidden_size = 32768


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size]


def inputs(case):
    # Rows of different size have different sums, however many outputs there are.
    size = case.rand(batch_size, 1, low=0.2, high=3.0)
    return [case.randn(batch_size, input_size) * size]


# With a negative bias the mean sigmoid depends on the size of a row.
PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "input_size": 160, "hidden_size": 192},
    hidden={"batch_size": 37, "input_size": 131, "hidden_size": 101},
    state={"linear.bias": Normal(-2.0, 0.5)},
)
