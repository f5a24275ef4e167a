"""Mean over rows of the Kullback-Leibler divergence of predicted distributions from target ones."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.kl_div(torch.log(predictions), targets, reduction="batchmean")


batch_size = 16384
dim = 16384


def get_inputs():
    scale = torch.rand(())
    predictions = torch.softmax(scale * torch.rand(batch_size, dim), dim=-1)
    targets = torch.softmax(torch.rand(batch_size, dim), dim=-1)
    return [predictions, targets]


def get_init_inputs():
    return []


def inputs(case):
    # A mean over so many values hardly changes from draw to draw, unless their scales do. Softmax of uniform values:
    # of normal ones, some probabilities would vanish in 16 bits.
    predictions = case.rand(1, low=1.0, high=4.0) * case.rand(batch_size, dim)
    targets = case.rand(1, low=1.0, high=4.0) * case.rand(batch_size, dim)
    return [torch.softmax(predictions, dim=-1), torch.softmax(targets, dim=-1)]


PROBLEM = ModelProblem(tiny={"batch_size": 24, "dim": 320}, hidden={"batch_size": 7, "dim": 211})
