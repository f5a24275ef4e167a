"""Ring attention: exact softmax attention over a sequence whose blocks are spread over the ranks.

Rank c of the group holds positions c*S to (c+1)*S - 1 of queries, keys and values, and returns the attention of
its own queries over the keys of all ranks. Scores, softmax and sums are float32; the result is cast to q's dtype.
With `causal`, a query sees the keys at its own position and before, by position in the whole sequence. A scale of
None means D**-0.5.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.suites.parallel._shared.ring_attention import (
    HEADS,
    WIDTH,
    causal_at_first,
    choose_scale,
    count_visible_blocks,
    local_shape,
    ring_link,
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


def solution(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    group = group or dist.group.WORLD
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
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


PROBLEM = Problem(
    category="Context Parallel",
    source="Ring Attention (Liu et al. 2023), as in ring-flash-attention and Megatron-LM context parallelism",
    sizes={"tiny": Size(128, 2048), "paper": Size(1024, 1024), "large": Size(64, 2097152)},
    deviations={
        "values": "queries are twice as large, so that it shows which keys are seen",
        "variants": (
            "`causal` is False in every other trial, and `softmax_scale` is 0.2 in two; published calls are always "
            "causal with None"
        ),
    },
)


def inputs(case):
    batch, tokens = local_shape(case, ring=case.world)
    # Large queries make the softmax uneven: which keys are seen, and with what scale, then matters.
    q = case.randn(batch, tokens, HEADS, WIDTH, scale=2.0)
    k, v = (case.randn(batch, tokens, HEADS, WIDTH) for _ in range(2))
    return q, k, v, choose_scale(case), causal_at_first(case)


def cost(case):
    batch, tokens = local_shape(case, ring=case.world)
    ring = case.world, case.rank, causal_at_first(case)
    block = batch * tokens * HEADS * WIDTH * case.itemsize
    return Cost(
        flops=4 * batch * HEADS * tokens**2 * WIDTH * count_visible_blocks(*ring),
        hbm=4 * block,
        # The reference's ring carries every block past every rank, also those that see none of it.
        link=ring_link(block, *ring),
    )


def own_block_only(q, k, v, softmax_scale=None, causal=False, group=None):
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    return attend(q.float(), k, v, scale, causal)[0].to(q.dtype)


def later_blocks_seen(q, k, v, softmax_scale=None, causal=False, group=None):
    return solution(q, k, v, softmax_scale, False, group)


def given_scale_ignored(q, k, v, softmax_scale=None, causal=False, group=None):
    return solution(q, k, v, None, causal, group)


def blocks_weighted_alike(q, k, v, softmax_scale=None, causal=False, group=None):
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    rank, kv = dist.get_rank(), torch.stack((k, v))
    blocks = [torch.empty_like(kv) for _ in range(dist.get_world_size())]
    dist.all_gather(blocks, kv)
    seen = [c for c in range(len(blocks)) if c <= rank or not causal]
    outs = [attend(q.float(), *blocks[c], scale, masked=causal and c == rank)[0] for c in seen]
    return torch.stack(outs).mean(dim=0).to(q.dtype)


MUTANTS = {
    "own_block_only": own_block_only,
    "later_blocks_seen": later_blocks_seen,
    "given_scale_ignored": given_scale_ignored,
    "blocks_weighted_alike": blocks_weighted_alike,
}
