"""Mean Huber loss: differences are squared below 1 and linear above."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.smooth_l1_loss(predictions, targets)


batch_size = 32768
dim = 32768


def get_inputs():
    scale = torch.rand(())
    return [scale * torch.rand(batch_size, dim), torch.rand(batch_size, dim)]


def get_init_inputs():
    return []


def inputs(case):
    # A mean over so many values hardly changes from draw to draw, unless their scales do.
    predictions = case.rand(1, low=0.5, high=2.0) * case.randn(batch_size, dim)
    targets = case.rand(1, low=0.5, high=2.0) * case.randn(batch_size, dim)
    return [predictions, targets]


PROBLEM = ModelProblem(tiny={"batch_size": 24, "dim": 320}, hidden={"batch_size": 7, "dim": 211})
