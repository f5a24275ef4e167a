"""A linear layer, a batch norm, dropout, and a scale of the model's own."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, dropout_p):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.norm = nn.BatchNorm1d(out_features)
        self.dropout = nn.Dropout(dropout_p)
        self.scale = nn.Parameter(torch.ones(out_features))

    def forward(self, x):
        return torch.relu(self.dropout(self.norm(self.linear(x))) * self.scale)


batch_size = 256
in_features = 128
out_features = 512
dropout_p = 0.2


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, dropout_p]


PROBLEM = ModelProblem(
    tiny={"batch_size": 32, "in_features": 16, "out_features": 24, "dropout_p": 0.0},
    hidden={"batch_size": 19, "in_features": 13, "out_features": 11, "dropout_p": 0.0},
)

EQUIVALENT = {"ignore linear.bias": "the batch norm subtracts it"}
