"""Product of two matrices with a short inner dimension."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


M = 32768
K = 64
N = 32768


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"M": 192, "K": 16, "N": 160}, hidden={"M": 131, "K": 11, "N": 97})
