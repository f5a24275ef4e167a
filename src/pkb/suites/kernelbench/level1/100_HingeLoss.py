"""Mean hinge loss of a square matrix; targets belong to its columns, not to its rows."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


batch_size = 32768


def get_inputs():
    predictions = torch.rand(batch_size, batch_size)
    targets = torch.randint(0, 2, (batch_size,)).float() * 2 - 1
    return [predictions, targets]


def get_init_inputs():
    return []


def inputs(case):
    # Predictions lean to the target of their column, more or less from draw to draw: otherwise the loss is nearly the
    # same for every draw, and for targets of rows.
    targets = (2 * case.randint(0, 2, batch_size) - 1).to(case.dtype)
    lean = case.rand(1, low=0.5, high=2.0)
    return [case.randn(batch_size, batch_size) + lean * targets, targets]


PROBLEM = ModelProblem(tiny={"batch_size": 96}, hidden={"batch_size": 61})
