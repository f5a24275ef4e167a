"""Two pipeline stages of one attention layer each, the sequence of each stage spread over its ranks.

The first stage works on `hidden_states`; a later one on what the rank at the same place in the stage before it
sends, and there `hidden_states` only tells the shape. A stage projects to q, k and v, does ring attention over its
context-parallel group, and projects back; there is no residual, norm or bias. Every rank returns its own stage's
output. The rows of `w_qkv` run over q, k and v, then over heads, then over the head's width. Attention is float32
inside and rounded to the run's dtype; causal goes by position in the whole sequence; a scale of None means
D**-0.5. A `cp_group` of None is WORLD; a `pp_group` of None means that there is one stage.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link
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
    two_rings,
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


def stage(
    states: torch.Tensor,
    w_qkv: torch.Tensor,
    w_o: torch.Tensor,
    heads: int,
    softmax_scale: float | None,
    causal: bool,
    cp_group: dist.ProcessGroup | None,
) -> torch.Tensor:
    batch, tokens, _ = states.shape
    qkv = (states @ w_qkv.T).view(batch, tokens, 3, heads, -1)
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
    cp_group: dist.ProcessGroup | None = None,
    pp_group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    stages = dist.get_process_group_ranks(pp_group) if pp_group else [dist.get_rank()]
    place = stages.index(dist.get_rank())
    states = hidden_states
    if place > 0:
        states = torch.empty_like(hidden_states)
        dist.recv(states, stages[place - 1], pp_group)
    out = stage(states, w_qkv, w_o, num_heads, softmax_scale, causal, cp_group)
    if place + 1 < len(stages):
        dist.send(out, stages[place + 1], pp_group)
    return out


PROBLEM = Problem(
    category="Pipeline Parallel",
    source="pipeline stages of Megatron-LM with context parallelism, one micro-batch",
    sizes={"tiny": Size(128, 1024), "paper": Size(1024, 1024), "large": Size(128, 1048576)},
    requires={"the ranks are divided over two stages": lambda case: case.world == 1 or case.world % 2 == 0},
    deviations={
        "values": (
            "weights are scaled by their fan-in (published: 0.02); later stages get noise as `hidden_states`, not the "
            "input of the first stage, so that a kernel that works on it is caught"
        ),
        "variants": (
            "`causal` is False in every other trial, and `softmax_scale` is 0.2 in two; published calls are always "
            "causal with None"
        ),
    },
)


def inputs(case):
    stages, cp, place, _ = two_rings(case)
    batch, tokens = local_shape(case, ring=cp)
    # Later stages get noise of their own, so that a kernel which works on it is caught.
    hidden = case.randn(batch, tokens, HIDDEN)
    w_qkv = case.shared.randn(stages, 3 * HEADS * WIDTH, HIDDEN, scale=HIDDEN**-0.5)[place]
    # Large queries make the softmax uneven: which keys are seen, and with what scale, then matters.
    w_qkv[: HEADS * WIDTH] *= 1.25
    w_o = case.shared.randn(stages, HIDDEN, HEADS * WIDTH, scale=1.25 * (HEADS * WIDTH) ** -0.5)[place]
    groups = row_and_column_groups(case, stages, cp)
    return hidden, w_qkv, w_o, HEADS, choose_scale(case), causal_at_first(case), *groups


def cost(case):
    stages, cp, place, cp_rank = two_rings(case)
    batch, tokens = local_shape(case, ring=cp)
    width, rows = HEADS * WIDTH, batch * tokens
    ring = cp, cp_rank, causal_at_first(case)
    states = rows * HIDDEN * case.itemsize
    handed_on = Link(egress=states * (place < stages - 1), ingress=states * (place > 0))
    read = states if place == 0 else 0
    return Cost(
        flops=8 * rows * HIDDEN * width + 4 * rows * tokens * width * count_visible_blocks(*ring),
        hbm=read + states + 4 * width * HIDDEN * case.itemsize,
        # The reference's ring carries every block past every rank, also those that see none of it.
        link=ring_link(rows * width * case.itemsize, *ring) + handed_on,
    )


def hand_over_skipped(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, cp_group, pp_group):
    return stage(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, cp_group)


def mask_forgotten(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, cp_group, pp_group):
    return solution(hidden_states, w_qkv, w_o, num_heads, softmax_scale, False, cp_group, pp_group)


def last_stage_given_to_all(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, cp_group, pp_group):
    out = solution(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, cp_group, pp_group)
    dist.broadcast(out, dist.get_process_group_ranks(pp_group)[-1], group=pp_group)
    return out


def ring_over_everybody(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, cp_group, pp_group):
    return stage(hidden_states, w_qkv, w_o, num_heads, softmax_scale, causal, None)


MUTANTS = {
    "hand_over_skipped": hand_over_skipped,
    "mask_forgotten": mask_forgotten,
    "last_stage_given_to_all": last_stage_given_to_all,
    "ring_over_everybody": ring_over_everybody,
}
