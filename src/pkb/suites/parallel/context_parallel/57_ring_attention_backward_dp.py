"""Backward pass of ring attention, its gradients averaged over data-parallel replicas.

Each replica is one context-parallel group, whose rank c holds block c of the sequence. `out` and `softmax_lse` are
what the forward pass over the whole sequence left: probabilities come from the given log-sum-exp, never from a new
softmax. Arithmetic and the sums over blocks are float32, also for 16-bit inputs; dq, dk and dv are then rounded
to their argument's dtype, summed in it over the data-parallel group and divided by its size. With `causal`, a query
sees the keys at its own position and before. A scale of None means D**-0.5. A `cp_group` of None is WORLD; a
`dp_group` of None means that there is one replica.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link
from pkb.suites.parallel._shared.ring_attention import (
    HEADS,
    WIDTH,
    choose_scale,
    local_shape,
    row_and_column_groups,
    two_rings,
)


def passed_on(block: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    """Send a block to the next rank of the ring; the result is the previous rank's."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    after, before = (dist.get_global_rank(group, (rank + step) % size) for step in (1, -1))
    received = torch.empty_like(block)
    sending = dist.P2POp(dist.isend, block, after, group)
    receiving = dist.P2POp(dist.irecv, received, before, group)
    for work in dist.batch_isend_irecv([sending, receiving]):
        work.wait()
    return received


def block_gradients(
    dout: torch.Tensor,
    q: torch.Tensor,
    kv: torch.Tensor,
    delta: torch.Tensor,
    lse: torch.Tensor,
    scale: float,
    masked: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the pair of these queries and these keys adds to dq, and to dk and dv."""
    k, v = kv.float()
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * scale
    if masked:
        future = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    p = torch.exp(scores - lse.unsqueeze(-1))
    dp = torch.einsum("bqhd,bkhd->bhqk", dout, v)
    ds = p * (dp - delta.unsqueeze(-1)) * scale
    dk = torch.einsum("bhqk,bqhd->bkhd", ds, q)
    dv = torch.einsum("bhqk,bqhd->bkhd", p, dout)
    return torch.einsum("bhqk,bkhd->bqhd", ds, k), torch.stack((dk, dv))


def ring_backward(
    dout: torch.Tensor,
    q: torch.Tensor,
    kv: torch.Tensor,
    delta: torch.Tensor,
    lse: torch.Tensor,
    scale: float,
    causal: bool,
    group: dist.ProcessGroup,
) -> tuple[torch.Tensor, torch.Tensor]:
    """dq of this rank's queries, and dk and dv of its keys, over the whole sequence."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    dq, dkv = torch.zeros_like(q), torch.zeros_like(kv, dtype=torch.float32)
    for step in range(size):
        if step <= rank or not causal:
            dq_part, dkv_part = block_gradients(dout, q, kv, delta, lse, scale, masked=causal and step == 0)
            dq, dkv = dq + dq_part, dkv + dkv_part
        if step + 1 < size:
            kv = passed_on(kv, group)
        if size > 1:
            dkv = passed_on(dkv, group)
    return dq, dkv


def solution(
    dout: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    softmax_lse: torch.Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    cp_group: dist.ProcessGroup | None = None,
    dp_group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    delta = (dout.float() * out.float()).sum(dim=-1).transpose(1, 2)
    kv, group = torch.stack((k, v)), cp_group or dist.group.WORLD
    dq, (dk, dv) = ring_backward(dout.float(), q.float(), kv, delta, softmax_lse, scale, causal, group)

    gradients = dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)
    if dp_group:
        for gradient in gradients:
            dist.all_reduce(gradient, group=dp_group)
            gradient.div_(dist.get_world_size(dp_group))
    return gradients


PROBLEM = Problem(
    category="Context Parallel",
    source="backward pass of ring-flash-attention with context and data parallelism as in Megatron-LM",
    sizes={"tiny": Size(128, 1024), "paper": Size(1024, 1024), "large": Size(64, 1048576)},
    requires={"the ranks are divided over two replicas": lambda case: case.world == 1 or case.world % 2 == 0},
    deviations={
        "values": (
            "`out` and `softmax_lse` are those of the forward pass over the whole ring; the published ones are those "
            "of the rank's own block, which no forward pass returns. Queries are twice as large"
        ),
        "variants": (
            "`causal` is True in every other trial, and `softmax_scale` is 0.2 in two; published calls are never "
            "causal, with None"
        ),
    },
)


def shape(case):
    """Batch, local sequence length, heads and their width."""
    return *local_shape(case, ring=two_rings(case)[1]), HEADS, WIDTH


def is_causal(case):
    return case.trial % 2 == 1


def forward(q, keys, values, scale, visible):
    """Output and log-sum-exp of queries over all the keys of a replica."""
    scores = torch.einsum("bqhd,bkhd->bhqk", q.float(), keys.float()) * scale
    scores.masked_fill_(~visible, float("-inf"))
    lse = scores.logsumexp(dim=-1)
    out = torch.einsum("bhqk,bkhd->bqhd", (scores - lse.unsqueeze(-1)).exp(), values.float())
    return out.to(q.dtype), lse


def inputs(case):
    batch, tokens, _, _ = shape(case)
    dp, cp, replica, place = two_rings(case)
    # Large queries make the softmax uneven, so that every probability matters.
    q, dout = case.randn(*shape(case), scale=2.0), case.randn(*shape(case))
    # The forward pass needs the keys and values of the whole replica.
    everybody = (case.shared.randn(dp, cp, *shape(case))[replica] for _ in range(2))
    keys, values = (blocks.transpose(0, 1).reshape(batch, cp * tokens, HEADS, WIDTH) for blocks in everybody)
    own = slice(place * tokens, (place + 1) * tokens)
    position = torch.arange(cp * tokens, device=case.device)
    visible = (position <= position[own, None]) | (not is_causal(case))
    scale = choose_scale(case)
    out, lse = forward(q, keys, values, scale or WIDTH**-0.5, visible)
    k, v = keys[:, own].contiguous(), values[:, own].contiguous()
    return dout, q, k, v, out, lse, scale, is_causal(case), *row_and_column_groups(case, dp, cp)


def cost(case):
    dp, cp, _, _ = two_rings(case)
    batch, tokens, _, _ = shape(case)
    elements = batch * tokens * HEADS * WIDTH
    block, lse = elements * case.itemsize, 4 * batch * HEADS * tokens
    # Half of the pairs of tokens drop out under the causal mask; the others can be shared out evenly. The
    # reference computes the masked halves of the blocks on the diagonal too.
    pairs = cp / 2 if is_causal(case) else cp
    # It is cheapest to send q, dout and two floats per query to the keys, and to sum dq. The reference sends
    # the keys and values, and returns both of their gradients.
    visit = 2 * block + 2 * lse + 4 * elements
    return Cost(
        flops=10 * elements * tokens * pairs,
        hbm=8 * block + lse,
        link=link.all_to_all(pairs * visit, cp) + link.all_reduce(3 * block, dp),
    )


def replicas_not_averaged(dout, q, k, v, out, softmax_lse, softmax_scale, causal, cp_group, dp_group):
    return solution(dout, q, k, v, out, softmax_lse, softmax_scale, causal, cp_group, None)


def replicas_summed(dout, q, k, v, out, softmax_lse, softmax_scale, causal, cp_group, dp_group):
    mean = solution(dout, q, k, v, out, softmax_lse, softmax_scale, causal, cp_group, dp_group)
    return tuple(gradient * dist.get_world_size(dp_group) for gradient in mean)


def mask_forgotten(dout, q, k, v, out, softmax_lse, softmax_scale, causal, cp_group, dp_group):
    return solution(dout, q, k, v, out, softmax_lse, softmax_scale, False, cp_group, dp_group)


def delta_forgotten(dout, q, k, v, out, softmax_lse, softmax_scale, causal, cp_group, dp_group):
    nothing = torch.zeros_like(out)
    return solution(dout, q, k, v, nothing, softmax_lse, softmax_scale, causal, cp_group, dp_group)


def key_gradients_one_hop_short(dout, q, k, v, out, softmax_lse, softmax_scale, causal, cp_group, dp_group):
    dq, dk, dv = solution(dout, q, k, v, out, softmax_lse, softmax_scale, causal, cp_group, dp_group)
    return dq, passed_on(dk, cp_group), passed_on(dv, cp_group)


MUTANTS = {
    "replicas_not_averaged": replicas_not_averaged,
    "replicas_summed": replicas_summed,
    "mask_forgotten": mask_forgotten,
    "delta_forgotten": delta_forgotten,
    "key_gradients_one_hop_short": key_gradients_one_hop_short,
}
