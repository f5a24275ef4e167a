"""Softmax attention of several heads, without a mask."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, Q, K, V):
        scores = torch.matmul(Q, K.transpose(-2, -1)) / Q.shape[-1] ** 0.5
        return torch.matmul(torch.softmax(scores, dim=-1), V)


batch_size = 8
heads = 16
length = 1024
width = 64


def get_inputs():
    shape = (batch_size, heads, length, width)
    return [torch.rand(shape), torch.rand(shape), torch.rand(shape)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "heads": 2, "length": 80, "width": 32},
    hidden={"batch_size": 1, "heads": 3, "length": 67, "width": 24},
)
ANSWERS = ["L1_97"]
"""Tasks whose function this is: its kernel is no example for them."""
