"""The row sums of a linear layer, with reductions after them that act on a single value."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        x = torch.sum(self.linear(x), dim=1, keepdim=True)
        x = torch.max(x, dim=1, keepdim=True).values
        x = torch.mean(x, dim=1, keepdim=True)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return torch.logsumexp(x, dim=1, keepdim=True)


batch_size = 1024
in_features = 8192
out_features = 8192


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]


PROBLEM = ModelProblem(
    tiny={"batch_size": 48, "in_features": 160, "out_features": 192},
    hidden={"batch_size": 37, "in_features": 131, "out_features": 101},
)

EQUIVALENT = {
    "skip mean": "the mean of one value",
    "skip logsumexp": "the logarithm of one exponential",
}
