"""Product of two matrices with a very long inner dimension."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


M = 256
K = 524288
N = 256


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"M": 48, "K": 4096, "N": 64}, hidden={"M": 37, "K": 3001, "N": 29})
