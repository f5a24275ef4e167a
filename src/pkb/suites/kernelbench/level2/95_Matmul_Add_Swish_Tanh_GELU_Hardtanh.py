"""A linear layer plus a learned vector, swish, tanh, GELU and a clamp to [-1, 1]."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features, add_value_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.add_value = nn.Parameter(torch.randn(add_value_shape))

    def forward(self, x):
        x = self.matmul(x) + self.add_value
        x = F.gelu(torch.tanh(torch.sigmoid(x) * x))
        return F.hardtanh(x, -1.0, 1.0)


batch_size = 1024
in_features = 8192
out_features = 8192
add_value_shape = (out_features,)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, add_value_shape]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 101},
)

EQUIVALENT = {
    "skip hardtanh": "the GELU of a tanh stays within the bounds",
}
