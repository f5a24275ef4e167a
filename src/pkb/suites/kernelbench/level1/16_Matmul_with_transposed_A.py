"""Product of two matrices, of which the first is given transposed."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A.T, B)


M = 2048
K = 8192
N = 4096


def get_inputs():
    return [torch.rand(K, M), torch.rand(K, N)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"M": 96, "K": 192, "N": 128}, hidden={"M": 67, "K": 131, "N": 53})
