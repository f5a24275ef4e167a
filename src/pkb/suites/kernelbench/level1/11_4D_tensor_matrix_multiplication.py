"""Product of the last dimension of a 4-D tensor with a matrix."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, A, B):
        return torch.einsum("bijl,lk->bijk", A, B)


batch_size = 8
dim1 = 256
dim2 = 512
K = 256
N = 768


def get_inputs():
    return [torch.rand(batch_size, dim1, dim2, K), torch.rand(K, N)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "dim1": 12, "dim2": 20, "K": 64, "N": 48},
    hidden={"batch_size": 3, "dim1": 7, "dim2": 11, "K": 37, "N": 41},
)
