"""ELU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return F.elu(x, alpha=self.alpha)


batch_size = 4096
dim = 393216
alpha = 1.0


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return [alpha]


PROBLEM = ModelProblem(tiny={"batch_size": 16, "dim": 384}, hidden={"batch_size": 5, "dim": 301, "alpha": 0.7})
