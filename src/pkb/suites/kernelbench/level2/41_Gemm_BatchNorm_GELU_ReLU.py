"""A linear layer, batch normalisation, GELU and ReLU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.batch_norm = nn.BatchNorm1d(out_features)

    def forward(self, x):
        return torch.relu(F.gelu(self.batch_norm(self.gemm(x))))


batch_size = 16384
in_features = 4096
out_features = 4096


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]


PROBLEM = ModelProblem(
    tiny={"batch_size": 80, "in_features": 96, "out_features": 112},
    hidden={"batch_size": 67, "in_features": 83, "out_features": 59},
)

EQUIVALENT = {"ignore gemm.bias": "the batch norm subtracts it"}
