"""Product of a diagonal matrix, given by its diagonal, and a full one."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return A.unsqueeze(1) * B


N = 4096
M = 4096


def get_inputs():
    return [torch.rand(N), torch.rand(N, M)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"N": 96, "M": 128}, hidden={"N": 61, "M": 83})
