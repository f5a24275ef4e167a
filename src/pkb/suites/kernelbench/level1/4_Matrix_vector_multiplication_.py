"""Product of a wide matrix and a column vector."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


M = 2048
K = 1048576


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, 1)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"M": 256, "K": 1536}, hidden={"M": 83, "K": 1187})
