import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs():
    return [torch.rand(2048, 1024), torch.rand(1024, 4096)]


def get_init_inputs():
    return []
