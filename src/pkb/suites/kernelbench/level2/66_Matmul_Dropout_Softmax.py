"""A linear layer, dropout and softmax over the features."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, dropout_p):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.dropout_p = dropout_p

    def forward(self, x):
        x = F.dropout(self.matmul(x), self.dropout_p, self.training)
        return torch.softmax(x, dim=1)


batch_size = 128
in_features = 16384
out_features = 16384
dropout_p = 0.2


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, dropout_p]


def inputs(case):
    # Large values, so that the softmax is far from uniform.
    return [case.randn(batch_size, in_features, scale=2.0)]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192, "dropout_p": 0.0},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 101, "dropout_p": 0.0},
)
