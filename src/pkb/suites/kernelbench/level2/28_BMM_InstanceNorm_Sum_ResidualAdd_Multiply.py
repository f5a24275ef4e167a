"""A linear layer, each row of it normalised, plus y, times y.

The instance normalisation sees one channel per row, so its statistics are those of the row.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.bmm = nn.Linear(in_features, out_features)
        self.eps = eps

    def forward(self, x, y):
        x = self.bmm(x)[:, None, None, :]
        x = F.instance_norm(x, eps=self.eps)[:, 0, 0, :]
        return (x + y) * y


batch_size = 1024
in_features = 8192
out_features = 8192


def get_inputs():
    return [torch.rand(batch_size, in_features), torch.rand(batch_size, out_features)]


def get_init_inputs():
    return [in_features, out_features]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 101},
)
