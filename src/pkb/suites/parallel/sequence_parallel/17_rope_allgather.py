"""Rotary position embedding on sequence shards of Q and K, then both are gathered along the sequence.

The two halves of cos and sin are independent: no symmetry of real rotation tables may be relied on.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def gather_sequence(x: torch.Tensor) -> torch.Tensor:
    shards = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(shards, x.contiguous())
    return torch.cat(shards, dim=1)


def solution(
    q_local: torch.Tensor, k_local: torch.Tensor, cos_local: torch.Tensor, sin_local: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    cos, sin = cos_local.unsqueeze(2), sin_local.unsqueeze(2)
    q = q_local * cos + rotate_half(q_local) * sin
    k = k_local * cos + rotate_half(k_local) * sin
    if not dist.is_initialized():
        return q, k
    return gather_sequence(q), gather_sequence(k)


PROBLEM = Problem(
    category="Sequence Parallel",
    source="rotary embedding under sequence parallelism (Megatron-LM, VeOmni; half rotation as in LLaMA)",
    sizes={"tiny": Size(128, 512), "paper": Size(1024, 1024), "large": Size(256, 524288)},
    requires={"the 8 heads are a multiple of the world size": lambda case: HEADS % case.world == 0},
)

HEADS, WIDTH = 8, 64


def shape(case):
    """Batch and local sequence length."""
    batch, tokens = max(1, case.m // 64), max(1, case.n // 64)
    return batch, max(1, tokens // case.world)


def inputs(case):
    batch, tokens = shape(case)
    q, k = (case.randn(batch, tokens, HEADS, WIDTH) for _ in range(2))
    cos, sin = (case.randn(batch, tokens, WIDTH) for _ in range(2))
    return q, k, cos, sin


def cost(case):
    batch, tokens = shape(case)
    elements = batch * tokens * HEADS * WIDTH
    own = elements * case.itemsize
    tables = 2 * batch * tokens * WIDTH * case.itemsize
    return Cost(
        flops=6 * elements,
        hbm=2 * own + tables + 2 * case.world * own,
        link=link.all_gather(2 * case.world * own, case.world),
    )


def first_half_of_cos_used_for_both(q_local, k_local, cos_local, sin_local):
    half = cos_local.chunk(2, dim=-1)[0]
    return solution(q_local, k_local, torch.cat((half, half), dim=-1), sin_local)


def neighbours_rotated(q_local, k_local, cos_local, sin_local):
    cos, sin = cos_local.unsqueeze(2), sin_local.unsqueeze(2)

    def rotated(x):
        return x * cos + torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2) * sin

    return gather_sequence(rotated(q_local)), gather_sequence(rotated(k_local))


def gathered_along_the_batch(q_local, k_local, cos_local, sin_local):
    results = solution(q_local, k_local, cos_local, sin_local)
    return tuple(torch.cat(x.chunk(dist.get_world_size(), dim=1)).view(x.shape) for x in results)


MUTANTS = {
    "first_half_of_cos_used_for_both": first_half_of_cos_used_for_both,
    "neighbours_rotated": neighbours_rotated,
    "gathered_along_the_batch": gathered_along_the_batch,
}
