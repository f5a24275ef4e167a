"""Products of the matrices of two batches, pair by pair."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.bmm(A, B)


batch_size = 128
m = 512
k = 1024
n = 2048


def get_inputs():
    return [torch.rand(batch_size, m, k), torch.rand(batch_size, k, n)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(
    tiny={"batch_size": 6, "m": 48, "k": 80, "n": 64}, hidden={"batch_size": 5, "m": 37, "k": 59, "n": 43}
)
