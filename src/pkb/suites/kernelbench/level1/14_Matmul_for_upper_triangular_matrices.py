"""Product of two upper triangular matrices, which is upper triangular too."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.triu(torch.matmul(A, B))


N = 4096


def get_inputs():
    return [torch.triu(torch.rand(N, N)), torch.triu(torch.rand(N, N))]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"N": 128}, hidden={"N": 97})

EQUIVALENT = {
    "skip triu": "the product of upper triangular matrices is upper triangular",
}
