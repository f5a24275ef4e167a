"""Scaled dot-product attention, without a mask."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, Q, K, V):
        return F.scaled_dot_product_attention(Q, K, V)


batch_size = 32
num_heads = 32
sequence_length = 512
head_dim = 1024


def get_inputs():
    shape = (batch_size, num_heads, sequence_length, head_dim)
    return [torch.rand(shape), torch.rand(shape), torch.rand(shape)]


def get_init_inputs():
    return []


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "num_heads": 4, "sequence_length": 80, "head_dim": 48},
    hidden={"batch_size": 3, "num_heads": 2, "sequence_length": 53, "head_dim": 37},
)
