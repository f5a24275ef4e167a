"""Causal multi-head self-attention with ReLU in place of softmax; the output projection is never applied."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, n_embd, n_head, max_seqlen):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("bias", torch.tril(torch.ones(1, 1, max_seqlen, max_seqlen)))

    def forward(self, x):
        batch, length, channels = x.shape
        q, k, v = (
            part.view(batch, length, self.n_head, -1).transpose(1, 2) for part in self.c_attn(x).split(channels, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(channels // self.n_head)
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        return (F.relu(scores) @ v).transpose(1, 2).reshape(batch, length, channels)


batch_size = 16
max_seqlen = 1024
n_embd = 768
n_head = 12


def get_inputs():
    return [torch.rand(batch_size, max_seqlen, n_embd)]


def get_init_inputs():
    return [n_embd, n_head, max_seqlen]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "max_seqlen": 48, "n_embd": 64, "n_head": 4},
    hidden={"batch_size": 3, "max_seqlen": 37, "n_embd": 51, "n_head": 3},
)
EQUIVALENT = {
    "ignore c_proj.weight": "the projection is never applied",
    "ignore c_proj.bias": "the projection is never applied",
    "skip __getitem__": "inputs are as long as the mask",
}
