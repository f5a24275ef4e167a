"""Swish: a value times its sigmoid."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


batch_size = 4096
dim = 393216


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"batch_size": 16, "dim": 384}, hidden={"batch_size": 5, "dim": 301})
