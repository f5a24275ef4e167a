import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.rand(4096, 8192), torch.rand(4096, 8192)]


def get_init_inputs():
    return []
