"""Product of two matrices whose sizes are no multiples of a power of two."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


M = 8205
K = 2949
N = 5921


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"M": 141, "K": 117, "N": 97}, hidden={"M": 71, "K": 149, "N": 83})
