"""Products of a batch of matrices with one matrix."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


N = 16
M = 1024
K = 2048
L = 768


def get_inputs():
    return [torch.rand(N, M, K), torch.rand(K, L)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"N": 4, "M": 48, "K": 96, "L": 80}, hidden={"N": 3, "M": 37, "K": 61, "L": 53})
