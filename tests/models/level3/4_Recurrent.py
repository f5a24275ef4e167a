"""A recurrent layer that starts anywhere, and an embedding that steers it."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.table = nn.Embedding(vocabulary, hidden)
        self.cell = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, tokens, gain):
        start = torch.randn(1, tokens.size(0), self.cell.hidden_size, device=tokens.device, dtype=gain.dtype)
        steps, last = self.cell(self.table(tokens) * gain, start)
        return steps, last.argmax(-1)


batch = 8
length = 12
vocabulary = 50
hidden = 32


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, length)), torch.rand(batch, length, 1)]


def get_init_inputs():
    return [vocabulary, hidden]


PROBLEM = ModelProblem(
    tiny={"batch": 5, "length": 6, "vocabulary": 17, "hidden": 8},
    hidden={"batch": 3, "length": 7, "vocabulary": 11, "hidden": 9},
)
