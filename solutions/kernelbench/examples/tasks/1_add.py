"""The sum of two matrices."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


rows = 4096
cols = 8192


def get_inputs():
    return [torch.rand(rows, cols), torch.rand(rows, cols)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"rows": 48, "cols": 160}, hidden={"rows": 37, "cols": 131})
