"""Gated DeltaNet on a sequence spread over the ranks, by an exchange of tokens for heads and back.

Rank r holds consecutive tokens of all heads, and the a_log and dt_bias (bfloat16 in a run of any dtype) of the Hv/W
value heads from r * Hv/W on. Value head j goes with the query and key head j // (Hv/H). Every value head keeps a state
of dk x dv that decays by one factor per token, unlearns what it holds under the key by the delta rule, and is read by
the query after the update, all in float32; beta is used as it is. The outputs have the dtype of q.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link
from pkb.problems.cost import Link


def to_heads(x: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    """From own tokens of all heads to all tokens of own heads."""
    blocks = x.unflatten(2, (dist.get_world_size(group), -1)).movedim(2, 0).contiguous()
    parts = torch.empty_like(blocks)
    dist.all_to_all_single(parts, blocks, group=group)
    return parts.movedim(0, 1).flatten(1, 2)


def to_tokens(x: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    """The way back."""
    parts = x.unflatten(1, (dist.get_world_size(group), -1)).movedim(1, 0).contiguous()
    blocks = torch.empty_like(parts)
    dist.all_to_all_single(blocks, parts, group=group)
    return blocks.movedim(0, 2).flatten(2, 3)


def delta_rule(q, k, v, gate, beta, a_log, dt_bias) -> torch.Tensor:
    q, k, v, gate, beta, a_log, dt_bias = (x.to(torch.float32) for x in (q, k, v, gate, beta, a_log, dt_bias))
    values_per_key = v.shape[2] // k.shape[2]
    q, k = (F.normalize(x, dim=-1, eps=1e-6).repeat_interleave(values_per_key, dim=2) for x in (q, k))
    q = q * q.shape[-1] ** -0.5
    decay = torch.exp(-a_log.exp() * F.softplus(gate + dt_bias))

    state = v.new_zeros(v.shape[0], *k.shape[2:], v.shape[-1])
    outputs = []
    for t in range(q.shape[1]):
        key, query = k[:, t].unsqueeze(-2), q[:, t].unsqueeze(-2)
        state = decay[:, t, :, None, None] * state
        update = beta[:, t, :, None, None] * (v[:, t].unsqueeze(-2) - key @ state)
        state = state + key.transpose(-1, -2) * update
        outputs.append((query @ state).squeeze(-2))
    return torch.stack(outputs, dim=1)


def solution(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    gate: torch.Tensor,
    beta: torch.Tensor,
    a_log: torch.Tensor,
    dt_bias: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    own_heads = (to_heads(x, group) for x in (q, k, v, gate, beta))
    outputs = delta_rule(*own_heads, a_log, dt_bias).to(q.dtype)
    return to_tokens(outputs, group).contiguous()


PROBLEM = Problem(
    category="Context Parallel",
    source="Gated DeltaNet of flash-linear-attention and Megatron-LM with all-to-all context parallelism",
    sizes={"tiny": Size(64, 32), "paper": Size(1024, 1024), "large": Size(65536, 1024)},
    deviations={
        "values": (
            "gates keep decays near 0.95, so that other ranks' states count, `a_log` and `dt_bias` are random, `v` "
            "makes results of order 1, and some keys and queries are zero"
        ),
        "variants": (
            "later trials pose a batch of two (`q`, `k`, `v`, `gate`, `beta`) and two value heads for each key head "
            "(`a_log`, `dt_bias`)"
        ),
    },
)


def shape(case):
    """Batch, local tokens, query and key heads, value heads, widths of keys and values."""
    heads = -(-6 // case.world) * case.world
    # The published form has one sequence and a value head for each key head; other trials have two.
    batch = 2 if case.trial in (1, 2) else 1
    value_heads = 2 * heads if case.trial in (2, 3) else heads
    return batch, max(1, case.m // 16), heads, value_heads, min(256, max(2, case.n // 4)), min(512, max(2, case.n // 2))


def inputs(case):
    batch, tokens, heads, value_heads, dk, dv = shape(case)
    q, k = (case.randn(batch, tokens, heads, dk) for _ in range(2))
    # Norms of zero must not divide.
    q[:, tokens // 2, 0], k[:, tokens // 2, -1] = 0, 0
    # The outputs are linear in v, and smaller by about dk.
    v = case.randn(batch, tokens, value_heads, dv, scale=dk)
    # Decays around 0.95 keep the state of other ranks alive.
    gate = case.randn(batch, tokens, value_heads, dtype=torch.float32) - 3
    beta = torch.sigmoid(case.randn(batch, tokens, value_heads, dtype=torch.bfloat16))
    own = value_heads // case.world
    a_log = case.rand(own, low=-0.3, high=0.5, dtype=torch.bfloat16)
    dt_bias = case.rand(own, low=-0.5, high=0.5, dtype=torch.bfloat16)
    return q, k, v, gate.to(case.dtype), beta.to(case.dtype), a_log, dt_bias


def cost(case):
    batch, tokens, heads, value_heads, dk, dv = shape(case)
    rows, s = batch * tokens, case.itemsize
    moved = rows * (2 * heads * dk + 2 * value_heads * (dv + 1)) * s
    # For long sequences it takes less to hand the states on from rank to rank.
    state = 4 * batch * value_heads * dk * dv
    exchanged = link.all_to_all(moved, case.world)
    return Cost(
        flops=7 * rows * value_heads * dk * dv,
        hbm=moved,
        link=Link(
            egress=min(exchanged.egress, state if case.rank < case.world - 1 else 0),
            ingress=min(exchanged.ingress, state if case.rank > 0 else 0),
        ),
    )


def state_lost_between_ranks(q, k, v, gate, beta, a_log, dt_bias, group=None):
    world = dist.get_world_size(group)
    ranks = [to_heads(x, group).chunk(world, dim=1) for x in (q, k, v, gate, beta)]
    outputs = [delta_rule(*part, a_log, dt_bias) for part in zip(*ranks, strict=True)]
    return to_tokens(torch.cat(outputs, dim=1).to(q.dtype), group).contiguous()


def beta_squashed_again(q, k, v, gate, beta, *rest):
    return solution(q, k, v, gate, torch.sigmoid(beta), *rest)


def keys_dealt_out_in_turn(q, k, v, gate, beta, a_log, dt_bias, group=None):
    """Value head j goes with key head j mod H."""
    own_heads = [to_heads(x, group) for x in (q, k, v, gate, beta)]
    times = v.shape[2] // k.shape[2]
    own_heads[:2] = (x.repeat(1, 1, times, 1) for x in own_heads[:2])
    return to_tokens(delta_rule(*own_heads, a_log, dt_bias).to(q.dtype), group).contiguous()


def gate_bias_forgotten(q, k, v, gate, beta, a_log, dt_bias, *rest):
    return solution(q, k, v, gate, beta, a_log, torch.zeros_like(dt_bias), *rest)


MUTANTS = {
    "state_lost_between_ranks": state_lost_between_ranks,
    "beta_squashed_again": beta_squashed_again,
    "keys_dealt_out_in_turn": keys_dealt_out_in_turn,
    "gate_bias_forgotten": gate_bias_forgotten,
}
