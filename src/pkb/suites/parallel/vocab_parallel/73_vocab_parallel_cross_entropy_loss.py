"""Cross entropy of every token with the vocabulary spread over the ranks.

Rank r holds the logits of the V/W ids from r * V/W on; the targets are the same on all ranks, and so is the result,
one loss per token without a mean. A target outside the vocabulary is no error: its logit counts as the maximum, and
the loss is the logarithm of the sum of exp(logit - maximum). The reference works in the dtype of the logits throughout.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def shifted_logits(logits: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    """Logits less the largest of the whole vocabulary."""
    largest = logits.amax(dim=-1)
    dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
    return logits - largest.unsqueeze(-1)


def target_logits(shifted: torch.Tensor, target: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    ids = shifted.shape[-1]
    place = target - dist.get_rank(group) * ids
    own = (place >= 0) & (place < ids)
    picked = shifted.gather(-1, place.clamp(0, ids - 1).unsqueeze(-1)).squeeze(-1)
    picked = torch.where(own, picked, torch.zeros_like(picked))
    dist.all_reduce(picked, group=group)
    return picked


def solution(
    vocab_parallel_logits: torch.Tensor, target: torch.Tensor, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    shifted = shifted_logits(vocab_parallel_logits, group)
    picked = target_logits(shifted, target, group)
    total = shifted.exp().sum(dim=-1)
    dist.all_reduce(total, group=group)
    return total.log() - picked


PROBLEM = Problem(
    category="Vocab Parallel",
    source="vocabulary-parallel cross entropy of Megatron-LM, forward",
    sizes={"tiny": Size(8, 64), "paper": Size(1024, 512), "large": Size(4096, 131072)},
    requires={"the vocabulary of N ids is split over the ranks": lambda case: case.n % case.world == 0},
    # The published code subtracts the maximum in place.
    may_overwrite=("vocab_parallel_logits",),
    deviations={
        "values": (
            "some tokens have logits so large that exp overflows unless the maximum is taken off; targets are random, "
            "with the first and last id of every rank and two that no rank owns; the published ones follow a fixed "
            "pattern"
        ),
        "result": "`vocab_parallel_logits` may be overwritten, as the published code does",
    },
)

BATCH = 8


def inputs(case):
    ids = case.n // case.world
    # Some tokens have logits whose exp overflows unless the maximum is taken off first.
    offset = 120.0 * (torch.arange(case.m, device=case.device) % 4 == 1)
    logits = case.randn(BATCH, case.m, ids, scale=2.0, dtype=torch.float32) + offset.unsqueeze(-1)

    target = case.shared.randint(0, case.n, BATCH, case.m)
    # The first and the last id of every rank, and two that no rank owns.
    first = torch.arange(0, case.n, ids, device=case.device)
    special = torch.cat((first, first + ids - 1, torch.tensor([-100, case.n], device=case.device)))
    target.view(-1)[: special.numel()] = special
    return logits.to(case.dtype), target


def cost(case):
    tokens, ids, s = BATCH * case.m, case.n // case.world, case.itemsize
    # Combined where the target is owned, a token takes one log-sum-exp from each other rank and gives one loss
    # back. The reference moves three times as much.
    return Cost(
        flops=4 * tokens * ids,
        hbm=tokens * (ids * s + 8 + s),
        link=link.all_reduce(tokens * s, case.world),
    )


def own_maximum_only(vocab_parallel_logits, target, group=None):
    shifted = vocab_parallel_logits - vocab_parallel_logits.amax(dim=-1, keepdim=True)
    total = shifted.exp().sum(dim=-1)
    dist.all_reduce(total, group=group)
    return total.log() - target_logits(shifted, target, group)


def own_sum_only(vocab_parallel_logits, target, group=None):
    shifted = shifted_logits(vocab_parallel_logits, group)
    return shifted.exp().sum(dim=-1).log() - target_logits(shifted, target, group)


def foreign_targets_not_masked(vocab_parallel_logits, target, group=None):
    ids = vocab_parallel_logits.shape[-1]
    nearest = (target - dist.get_rank(group) * ids).clamp(0, ids - 1)
    picked = shifted_logits(vocab_parallel_logits, group).gather(-1, nearest.unsqueeze(-1)).squeeze(-1)
    dist.all_reduce(picked, group=group)
    nobody = torch.full_like(target, -1)
    return solution(vocab_parallel_logits, nobody, group) - picked


MUTANTS = {
    "own_maximum_only": own_maximum_only,
    "own_sum_only": own_sum_only,
    "foreign_targets_not_masked": foreign_targets_not_masked,
}
