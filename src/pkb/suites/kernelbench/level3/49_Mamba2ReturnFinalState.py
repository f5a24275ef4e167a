"""The state-space recurrence of Mamba-2, chunk by chunk: the last state. The weight C has no effect."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


def segment_sums(a):
    """[..., i, j]: the sum of a over j < k <= i, and -inf where j > i."""
    sums = a.cumsum(dim=-1)
    length = a.shape[-1]
    below = torch.tril(torch.ones(length, length, dtype=torch.bool, device=a.device))
    return (sums[..., :, None] - sums[..., None, :]).masked_fill(~below, float("-inf"))


class Model(nn.Module):
    def __init__(self, batch_size, seq_length, n_heads, d_head, d_state, block_len=64):
        super().__init__()
        self.block_len = block_len
        self.A = nn.Parameter(torch.randn(batch_size, seq_length, n_heads))
        self.B = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))
        self.C = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))

    def chunks(self, t):
        return t.reshape(len(t), -1, self.block_len, *t.shape[2:])

    def forward(self, X, initial_states=None):
        x, b = self.chunks(X), self.chunks(self.B)
        sums = self.chunks(self.A).permute(0, 3, 1, 2).cumsum(dim=-1)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, (sums[..., -1:] - sums).exp(), x)
        if initial_states is None:
            initial_states = torch.zeros_like(states[:, :1])
        states = torch.cat([initial_states, states], dim=1)
        decay = segment_sums(F.pad(sums[..., -1], (1, 0))).exp()
        return torch.einsum("bhzc,bchpn->bzhpn", decay, states)[:, -1]


batch_size = 2048
seq_length = 128
n_heads = 8
d_head = 64
d_state = 16
block_len = 64


def get_inputs():
    return [torch.rand(batch_size, seq_length, n_heads, d_head)]


def get_init_inputs():
    return [batch_size, seq_length, n_heads, d_head, d_state, block_len]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "seq_length": 48, "n_heads": 4, "d_head": 16, "d_state": 8, "block_len": 16},
    hidden={"batch_size": 3, "seq_length": 35, "n_heads": 3, "d_head": 13, "d_state": 5, "block_len": 7},
    # States that decay, and slowly, so that the first chunk still shows in the last state.
    state={"A": Normal(-0.05, 0.3), "[BC]": Normal(0.0, 1.0)},
)
EQUIVALENT = {
    "ignore C": "it reads outputs from the states, and only a state is returned",
    "skip masked_fill": "only the last row of the sums is used, where nothing is masked",
}
