"""A transformer block: causal self-attention and an MLP with the tanh form of GELU, each after layer norm."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class CausalSelfAttention(nn.Module):
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


class Model(nn.Module):
    def __init__(self, n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(n_embd, 4 * n_embd),
                "c_proj": nn.Linear(4 * n_embd, n_embd),
                "dropout": nn.Dropout(resid_pdrop),
            }
        )

    def feed_forward(self, x):
        x = F.gelu(self.mlp["c_fc"](x), approximate="tanh")
        return self.mlp["dropout"](self.mlp["c_proj"](x))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.feed_forward(self.ln_2(x))


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
