"""Kimi Delta Attention on a sequence spread over ranks, its outputs summed over tensor-parallel peers.

The context-parallel ranks (cp_group, or all ranks) hold consecutive parts of the sequence. Every head keeps a state of
dk x dv that decays by channel, unlearns what it holds under the key by the delta rule, and is read by the query after
the update. Gates, norms and state are float32; the outputs are cast to the dtype of q before they are summed over
tp_group (None: no sum), whose ranks hold different q, k, v, g and beta of the same tokens. a_log and dt_bias are
bfloat16 in a run of any dtype.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link
from pkb.problems.cost import Link


def gather_sequence(x: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    own = x.transpose(0, 1).contiguous()
    every = own.new_empty(dist.get_world_size(group) * own.shape[0], *own.shape[1:])
    dist.all_gather_into_tensor(every, own, group=group)
    return every.transpose(0, 1)


def channel_decay(g: torch.Tensor, a_log: torch.Tensor, dt_bias: torch.Tensor) -> torch.Tensor:
    heads, width = g.shape[-2:]
    rate = a_log.to(torch.float32).exp().unsqueeze(-1)
    return torch.exp(-5.0 * torch.sigmoid(rate * (g + dt_bias.to(torch.float32).view(heads, width))))


def delta_attention(q, k, v, g, beta, a_log, dt_bias) -> torch.Tensor:
    q, k, v, g, beta = (x.to(torch.float32) for x in (q, k, v, g, beta))
    q = F.normalize(q, dim=-1, eps=1e-12) * q.shape[-1] ** -0.5
    k = F.normalize(k, dim=-1, eps=1e-12)
    decay, rate = channel_decay(g, a_log, dt_bias), torch.sigmoid(beta)

    state = v.new_zeros(v.shape[0], *k.shape[2:], v.shape[-1])
    outputs = []
    for t in range(q.shape[1]):
        key, query = k[:, t].unsqueeze(-2), q[:, t].unsqueeze(-2)
        state = decay[:, t].unsqueeze(-1) * state
        update = rate[:, t, :, None, None] * (v[:, t].unsqueeze(-2) - key @ state)
        state = state + key.transpose(-1, -2) * update
        outputs.append((query @ state).squeeze(-2))
    return torch.stack(outputs, dim=1)


def solution(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    a_log: torch.Tensor,
    dt_bias: torch.Tensor,
    cp_group: dist.ProcessGroup | None = None,
    tp_group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    sequence = (gather_sequence(x, cp_group) for x in (q, k, v, g, beta))
    outputs = delta_attention(*sequence, a_log, dt_bias).to(q.dtype)
    if tp_group is not None:
        dist.all_reduce(outputs, group=tp_group)
    return outputs.chunk(dist.get_world_size(cp_group), dim=1)[dist.get_rank(cp_group)].contiguous()


PROBLEM = Problem(
    category="Context Parallel",
    source="Kimi Delta Attention (Kimi Linear) of flash-linear-attention with context and tensor parallelism",
    sizes={"tiny": Size(96, 64), "paper": Size(1024, 1024), "large": Size(65536, 1024)},
    deviations={
        "values": (
            "gates keep decays near 0.9, so that other ranks' states count, `a_log` and `dt_bias` are random, `v` "
            "makes results of order 1, and some keys and queries are zero"
        ),
    },
)

HEADS = 16


def shape(case):
    """Batch, local tokens, widths of keys and values. Small cases hold two sequences."""
    batch = 2 if case.m < 1024 else 1
    return batch, max(1, case.m // 16), min(128, max(2, case.n // 8)), min(128, max(2, case.m // 8))


def tp_size(case):
    """Tensor-parallel ranks in a group: neighbours share one where there are at least two pairs."""
    return 2 if case.world >= 4 and case.world % 2 == 0 else 1


def groups(case):
    tp, world = tp_size(case), case.world
    if tp == 1:
        return None, None
    cp_group = case.subgroup([list(range(first, world, tp)) for first in range(tp)])
    return cp_group, case.subgroup([list(range(first, first + tp)) for first in range(0, world, tp)])


def inputs(case):
    batch, tokens, dk, dv = shape(case)
    q, k = (case.randn(batch, tokens, HEADS, dk) for _ in range(2))
    # Norms of zero must not divide.
    q[:, tokens // 2, 0], k[:, tokens // 2, -1] = 0, 0
    # The outputs are linear in v, and smaller by about dk.
    v = case.randn(batch, tokens, HEADS, dv, scale=dk)
    # Decays around 0.9 keep the state of other ranks alive.
    g = case.randn(batch, tokens, HEADS, dk, dtype=torch.float32) - 4
    a_log = case.shared.rand(HEADS, low=-0.3, high=0.3, dtype=torch.bfloat16)
    dt_bias = case.shared.rand(HEADS * dk, low=-0.5, high=0.5, dtype=torch.bfloat16)
    return q, k, v, g.to(case.dtype), case.randn(batch, tokens, HEADS), a_log, dt_bias, *groups(case)


def cost(case):
    batch, tokens, dk, dv = shape(case)
    tp, s = tp_size(case), case.itemsize
    place, last = case.rank // tp, case.world // tp - 1
    rows = batch * tokens * HEADS
    state, history = 4 * batch * HEADS * dk * dv, rows * (2 * dk + dv + 1) * s
    # A rank needs the state before its own tokens, or all that led to it. The reference gathers everything and
    # computes all tokens on every rank.
    handed_on = Link(min(state, history) if place < last else 0, min(state, place * history))
    return Cost(
        flops=7 * rows * dk * dv,
        hbm=rows * (3 * dk + 2 * dv + 1) * s,
        link=handed_on + link.all_reduce(rows * dv * s, tp),
    )


def state_lost_between_ranks(q, k, v, g, beta, a_log, dt_bias, cp_group=None, tp_group=None):
    outputs = delta_attention(q, k, v, g, beta, a_log, dt_bias).to(q.dtype)
    if tp_group is not None:
        dist.all_reduce(outputs, group=tp_group)
    return outputs


def tensor_parallel_sum_missing(*args):
    return solution(*args[:8], None)


def heads_decay_alike(q, k, v, g, beta, a_log, *rest):
    return solution(q, k, v, g, beta, torch.zeros_like(a_log), *rest)


def gate_bias_forgotten(q, k, v, g, beta, a_log, dt_bias, *rest):
    return solution(q, k, v, g, beta, a_log, torch.zeros_like(dt_bias), *rest)


MUTANTS = {
    "state_lost_between_ranks": state_lost_between_ranks,
    "tensor_parallel_sum_missing": tensor_parallel_sum_missing,
    "heads_decay_alike": heads_decay_alike,
    "gate_bias_forgotten": gate_bias_forgotten,
}
