"""Product of two lower triangular matrices, which is lower triangular too."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B))


M = 4096


def get_inputs():
    return [torch.tril(torch.rand(M, M)), torch.tril(torch.rand(M, M))]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"M": 128}, hidden={"M": 97})

EQUIVALENT = {
    "skip tril": "the product of lower triangular matrices is lower triangular",
}
