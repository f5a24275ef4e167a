"""Gradient of the filtered tokens' log-probabilities with respect to the logits, with the vocabulary spread.

Every rank sees all tokens and their incoming gradients, but only its columns of the logits, for which it returns
the gradient in float32. The logits of a token are filtered by top-k and top-p as in sampling, in their own dtype;
filtered ones have gradient 0, also a target that is filtered away. A chunk is `batch * chunk_size` consecutive
tokens of the flattened batch; the last may be shorter. Chunks have no influence on the result. No logit ties with
a cut, and no sum of probabilities comes near 1 - top_p. grad_output is bfloat16 whatever the dtype of the run.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link
from pkb.suites.parallel._shared.sampled_vocab import (
    BATCH,
    candidates_link,
    chunk_size,
    filters,
    logits_and_targets,
    shape,
)


def own_rows(logits: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    """This rank's block of the tokens with the whole vocabulary, from all tokens with this rank's columns."""
    received = torch.empty_like(logits)
    dist.all_to_all_single(received, logits, group=group)
    return received.view(dist.get_world_size(group), -1, logits.shape[1]).transpose(0, 1).flatten(1)


def filtered(logits: torch.Tensor, top_k: int | None, top_p: float | None) -> torch.Tensor:
    if top_k is not None and top_k > 0:
        smallest = logits.topk(min(top_k, logits.shape[1]), dim=1).values[:, -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    if top_p is not None and top_p < 1.0:
        ascending, places = logits.sort(dim=1)
        keep = ascending.softmax(dim=1).cumsum(dim=1) > 1 - top_p
        keep[:, -1] = True
        logits = torch.empty_like(logits).scatter(1, places, ascending.masked_fill(~keep, float("-inf")))
    return logits


def chunk_tokens(target: torch.Tensor, chunk_size: int, world: int) -> int:
    chunk = target.shape[0] * max(1, chunk_size)
    if target.numel() % world or chunk % world:
        raise ValueError(f"chunks of {chunk} out of {target.numel()} tokens do not divide among {world} ranks")
    return chunk


def own_columns(rows: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    """The way back of `own_rows`: all tokens with this rank's columns."""
    world = dist.get_world_size(group)
    sent = rows.unflatten(1, (world, -1)).transpose(0, 1).contiguous()
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    return received.flatten(0, 1)


def row_gradient(logits: torch.Tensor, target: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """Of the target's log-probability, times `grad`. Logits of -inf have been filtered away."""
    gradient = -logits.to(torch.float32).softmax(dim=1)
    gradient[torch.arange(target.numel(), device=target.device), target] += 1
    return gradient * grad.to(torch.float32).unsqueeze(1) * (logits > float("-inf"))


def chunk_gradient(
    logits: torch.Tensor,
    target: torch.Tensor,
    grad: torch.Tensor,
    top_k: int | None,
    top_p: float | None,
    group: dist.ProcessGroup | None,
) -> torch.Tensor:
    rows = filtered(own_rows(logits.contiguous(), group), top_k, top_p)
    own_target, own_grad = (x.chunk(dist.get_world_size(group))[dist.get_rank(group)] for x in (target, grad))
    return own_columns(row_gradient(rows, own_target, own_grad), group)


def solution(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    grad_output: torch.Tensor,
    tp_group: dist.ProcessGroup | None = None,
    top_k: int | None = None,
    top_p: float = 1.0,
    chunk_size: int = 1,
) -> torch.Tensor:
    chunk = chunk_tokens(target, chunk_size, dist.get_world_size(tp_group))
    parts = (x.split(chunk) for x in (vocab_parallel_logits.flatten(0, 1), target.flatten(), grad_output.flatten()))
    gradients = [chunk_gradient(*part, top_k, top_p, tp_group) for part in zip(*parts, strict=True)]
    return torch.cat(gradients).view(vocab_parallel_logits.shape)


PROBLEM = Problem(
    category="Vocab Parallel",
    source="backward of the token log-probabilities under top-k and top-p sampling (NeMo-RL)",
    sizes={"tiny": Size(12, 32), "paper": Size(8, 256), "large": Size(4096, 131072)},
    requires={
        "the N columns of the vocabulary are split over the ranks": lambda case: case.n % case.world == 0,
        "the vocabulary needs at least 32 columns": lambda case: case.n >= 32,
    },
    deviations={
        "values": (
            "of the largest logits top-p keeps two to four by a margin, and targets are random, half of them among "
            "those; `grad_output` is random; the published target is always the largest logit"
        ),
        "variants": (
            "later trials pose other `top_k` and `top_p`, none and beyond the vocabulary too, and a `chunk_size` that "
            "leaves a shorter last chunk"
        ),
    },
)


def inputs(case):
    logits, target = logits_and_targets(case)
    grad_output = case.shared.randn(*target.shape, dtype=torch.bfloat16)
    return logits, target, grad_output, None, *filters(case), chunk_size(case)


def cost(case):
    length, width = shape(case)
    tokens = BATCH * length
    return Cost(
        # A comparison and a product for every logit. The reference sorts and normalises whole rows.
        flops=2 * tokens * width,
        hbm=tokens * (width * (case.itemsize + 4) + 8 + 2),
        # The reference sends all logits to the tokens' owners and all gradients back. The candidates are enough, then
        # two cuts and a normaliser for each token.
        link=candidates_link(case) + link.all_gather(12 * tokens, case.world),
    )


def top_p_ignored(logits, target, grad, tp_group=None, top_k=None, top_p=1.0, chunk_size=1):
    return solution(logits, target, grad, tp_group, top_k, 1.0, chunk_size)


def mean_over_tokens(logits, target, *rest):
    return solution(logits, target, *rest) / target.numel()


def filtered_target_keeps_its_term(logits, target, grad, tp_group=None, *rest):
    result = solution(logits, target, grad, tp_group, *rest)
    own = target - dist.get_rank(tp_group) * logits.shape[2]
    hit = torch.arange(logits.shape[2], device=logits.device) == own.unsqueeze(2)
    return torch.where(hit & (result == 0), grad.to(torch.float32).unsqueeze(2), result)


def targets_not_shifted_by_rank(logits, target, *rest):
    return solution(logits, target % logits.shape[2], *rest)


MUTANTS = {
    "top_p_ignored": top_p_ignored,
    "mean_over_tokens": mean_over_tokens,
    "filtered_target_keeps_its_term": filtered_target_keeps_its_term,
    "targets_not_shifted_by_rank": targets_not_shifted_by_rank,
}
