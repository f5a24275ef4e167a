"""Product of a tall matrix and a wide one, with a very short inner dimension."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


M = 32768
N = 32


def get_inputs():
    return [torch.rand(M, N), torch.rand(N, M)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"M": 256, "N": 16}, hidden={"M": 179, "N": 13})
