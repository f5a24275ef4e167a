"""A linear layer, the maximum over one axis, less the mean of that single value, then GELU: always zero."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, max_dim):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.max_dim = max_dim

    def forward(self, x):
        x = torch.max(self.gemm(x), dim=self.max_dim, keepdim=True).values
        return F.gelu(x - x.mean(dim=1, keepdim=True))


batch_size = 1024
in_features = 8192
out_features = 8192
max_dim = 1


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, max_dim]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 101},
    degenerate="the maximum leaves one value per row, and its own mean is subtracted from it: always 0",
)
