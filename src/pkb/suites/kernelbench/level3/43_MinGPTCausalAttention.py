"""Causal multi-head self-attention with its projections."""

import math

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.attn_dropout = nn.Dropout(attn_pdrop)
        self.resid_dropout = nn.Dropout(resid_pdrop)
        self.register_buffer("bias", torch.tril(torch.ones(1, 1, max_seqlen, max_seqlen)))

    def forward(self, x):
        batch, length, channels = x.shape
        q, k, v = (
            part.view(batch, length, self.n_head, -1).transpose(1, 2) for part in self.c_attn(x).split(channels, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(channels // self.n_head)
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        attended = self.attn_dropout(torch.softmax(scores, dim=-1)) @ v
        return self.resid_dropout(self.c_proj(attended.transpose(1, 2).reshape(batch, length, channels)))


batch_size = 128
max_seqlen = 1024
seq_len = 512
n_embd = 768
n_head = 8
attn_pdrop = 0.0
resid_pdrop = 0.0


def get_inputs():
    return [torch.rand(batch_size, seq_len, n_embd)]


def get_init_inputs():
    return [n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "max_seqlen": 64, "seq_len": 48, "n_embd": 64, "n_head": 4},
    hidden={"batch_size": 3, "max_seqlen": 41, "seq_len": 37, "n_embd": 51, "n_head": 3},
)
