"""Attention layer under tensor and context parallelism: heads split over one group, the sequence over another.

Each rank projects its block of the sequence onto its own heads, does ring attention over its context-parallel
group, and multiplies with its columns of the output projection; the tensor-parallel group sums the products. The
rows of `w_qkv` run over q, k and v, then over heads, then over the head's width. `num_heads` counts the heads of
the whole tensor-parallel group. Attention is float32 inside and rounded to the run's dtype; causal goes by position
in the whole sequence; a scale of None means D**-0.5. A group of None is WORLD.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link
from pkb.suites.parallel._shared.ring_attention import (
    HEADS,
    HIDDEN,
    WIDTH,
    causal_at_first,
    choose_scale,
    count_visible_blocks,
    local_shape,
    ring_link,
    row_and_column_groups,
)


def start_passing_on(block: torch.Tensor, group: dist.ProcessGroup) -> tuple[torch.Tensor, list[dist.Work]]:
    """Begin to send a block to the next rank of the ring; the previous rank's is in place once all works are done."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    after, before = (dist.get_global_rank(group, (rank + step) % size) for step in (1, -1))
    received = torch.empty_like(block)
    sending = dist.P2POp(dist.isend, block, after, group)
    receiving = dist.P2POp(dist.irecv, received, before, group)
    return received, dist.batch_isend_irecv([sending, receiving])


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, masked: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention over one block of keys, and the log of its softmax denominators, with a trailing dim of one."""
    scores = torch.einsum("bqhd,bkhd->bqhk", q, k.to(q.dtype)) * scale
    if masked:
        future = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future.unsqueeze(1), float("-inf"))
    log_sum = scores.logsumexp(dim=-1, keepdim=True)
    return torch.einsum("bqhk,bkhd->bqhd", (scores - log_sum).exp(), v.to(q.dtype)), log_sum


def ring_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool, group: dist.ProcessGroup
) -> torch.Tensor:
    """Attention of this rank's queries over the keys of the whole group, in float32, cast back at the end."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    queries, kv = q.float(), torch.stack((k, v))

    for step in range(size):
        moving = step + 1 < size
        if moving:
            incoming, works = start_passing_on(kv, group)
        if step == 0:
            out, log_sum = attend(queries, *kv, scale, masked=causal)
        elif step <= rank or not causal:
            block_out, block_log_sum = attend(queries, *kv, scale, masked=False)
            out = out + torch.sigmoid(block_log_sum - log_sum) * (block_out - out)
            log_sum = torch.logaddexp(log_sum, block_log_sum)
        if moving:
            for work in works:
                work.wait()
            kv = incoming
    return out.to(q.dtype)


def own_heads(
    hidden_states: torch.Tensor,
    w_qkv: torch.Tensor,
    w_o: torch.Tensor,
    heads: int,
    softmax_scale: float | None,
    causal: bool,
    cp_group: dist.ProcessGroup | None,
) -> torch.Tensor:
    """The part of the layer's output that this rank's heads contribute."""
    batch, tokens, _ = hidden_states.shape
    qkv = (hidden_states @ w_qkv.T).view(batch, tokens, 3, heads, -1)
    scale = qkv.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    context = ring_attention(*qkv.unbind(2), scale, causal, cp_group or dist.group.WORLD)
    return context.reshape(batch, tokens, -1) @ w_o.T


def solution(
    hidden_states: torch.Tensor,
    w_qkv: torch.Tensor,
    w_o: torch.Tensor,
    num_heads: int,
    softmax_scale: float | None = None,
    causal: bool = False,
    tp_group: dist.ProcessGroup | None = None,
    cp_group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    heads = num_heads // dist.get_world_size(tp_group)
    out = own_heads(hidden_states, w_qkv, w_o, heads, softmax_scale, causal, cp_group)
    dist.all_reduce(out, group=tp_group)
    return out


PROBLEM = Problem(
    category="Context Parallel",
    source="attention layer of Megatron-LM with tensor and context parallelism",
    sizes={"tiny": Size(128, 1024), "paper": Size(1024, 1024), "large": Size(64, 2097152)},
    requires={"tensor parallelism takes the ranks in pairs": lambda case: case.world == 1 or case.world % 2 == 0},
    deviations={
        "values": (
            "weights are scaled by their fan-in (published: 0.02), queries are twice as large, so that it shows which "
            "keys are seen"
        ),
        "variants": (
            "`causal` is False in every other trial, and `softmax_scale` is 0.2 in two; published calls are always "
            "causal with None"
        ),
    },
)


def grid(case):
    """Tensor-parallel and context-parallel size, and this rank's place in each group."""
    tp = min(2, case.world)
    return tp, case.world // tp, case.rank % tp, case.rank // tp


def inputs(case):
    tp, cp, tp_rank, cp_rank = grid(case)
    batch, tokens = local_shape(case, ring=cp)
    own_width = HEADS // tp * WIDTH
    hidden = case.shared.randn(cp, batch, tokens, HIDDEN)[cp_rank]
    w_qkv = case.shared.randn(tp, 3 * own_width, HIDDEN, scale=HIDDEN**-0.5)[tp_rank]
    # Large queries make the softmax uneven: which keys are seen, and with what scale, then matters.
    w_qkv[:own_width] *= 2
    w_o = case.shared.randn(tp, HIDDEN, own_width, scale=1.5 * (HEADS * WIDTH) ** -0.5)[tp_rank]
    groups = row_and_column_groups(case, cp, tp)
    return hidden, w_qkv, w_o, HEADS, choose_scale(case), causal_at_first(case), *groups


def cost(case):
    tp, cp, _, cp_rank = grid(case)
    batch, tokens = local_shape(case, ring=cp)
    own_width, rows = HEADS // tp * WIDTH, batch * tokens
    ring = cp, cp_rank, causal_at_first(case)
    states = rows * HIDDEN * case.itemsize
    return Cost(
        flops=8 * rows * HIDDEN * own_width + 4 * rows * tokens * own_width * count_visible_blocks(*ring),
        hbm=2 * states + 4 * own_width * HIDDEN * case.itemsize,
        # The reference's ring carries every block past every rank, also those that see none of it.
        link=ring_link(rows * own_width * case.itemsize, *ring) + link.all_reduce(states, tp),
    )


def heads_not_summed(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, tp_group, cp_group):
    heads = num_heads // dist.get_world_size(tp_group)
    return own_heads(hidden_states, w_qkv, w_o, heads, softmax_scale, causal, cp_group)


def mask_forgotten(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, tp_group, cp_group):
    return solution(hidden_states, w_qkv, w_o, num_heads, softmax_scale, False, tp_group, cp_group)


def rows_taken_head_by_head(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, tp_group, cp_group):
    heads = num_heads // dist.get_world_size(tp_group)
    shuffled = w_qkv.view(heads, 3, -1, w_qkv.shape[1]).transpose(0, 1).reshape(w_qkv.shape)
    return solution(hidden_states, shuffled, w_o, num_heads, softmax_scale, causal, tp_group, cp_group)


def groups_swapped(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, tp_group, cp_group):
    return solution(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, cp_group, tp_group)


MUTANTS = {
    "heads_not_summed": heads_not_summed,
    "mask_forgotten": mask_forgotten,
    "rows_taken_head_by_head": rows_taken_head_by_head,
    "groups_swapped": groups_swapped,
}
