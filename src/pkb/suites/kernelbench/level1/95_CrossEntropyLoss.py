"""Mean cross entropy of rows of logits and the indices of their classes."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.cross_entropy(predictions, targets)


batch_size = 32768
num_classes = 4096


def get_inputs():
    return [torch.rand(batch_size, num_classes), torch.randint(0, num_classes, (batch_size,))]


def get_init_inputs():
    return []


def inputs(case):
    # Rows of one scale would all have nearly the same loss.
    scale = case.rand(batch_size, 1, low=0.5, high=4.0)
    return [scale * case.randn(batch_size, num_classes), case.randint(0, num_classes, batch_size)]


PROBLEM = ModelProblem(tiny={"batch_size": 24, "num_classes": 160}, hidden={"batch_size": 7, "num_classes": 101})
