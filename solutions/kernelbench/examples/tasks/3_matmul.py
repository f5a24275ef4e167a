"""The product of two matrices."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


M = 2048
K = 1024
N = 4096


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(tiny={"M": 96, "K": 160, "N": 192}, hidden={"M": 37, "K": 131, "N": 141})
ANSWERS = [f"L1_{number}" for number in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 13, 14, 15)]
"""Tasks whose function this is: its kernel is no example for them."""
