"""Log-probabilities of given tokens under top-k and top-p sampling, with the vocabulary spread over the ranks.

Every rank sees all tokens but only its columns of the logits; all ranks end with all results. The filter works in
the dtype of the logits, the log-softmax of what it leaves in float32. A target that is filtered away has
log-probability -inf. Values equal to the k-th largest stay. No logit ties with a cut, and no sum of probabilities
comes near 1 - top_p.
"""

import torch
import torch.distributed as dist

from pkb import Problem, Size
from pkb.suites.parallel._shared.sampled_vocab import filters, log_prob_cost, logits_and_targets


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


def solution(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    tp_group: dist.ProcessGroup | None = None,
    top_k: int | None = None,
    top_p: float = 1.0,
) -> torch.Tensor:
    world, rank = dist.get_world_size(tp_group), dist.get_rank(tp_group)
    if target.numel() % world:
        raise ValueError(f"{target.numel()} tokens do not divide among {world} ranks")
    rows = own_rows(vocab_parallel_logits.flatten(0, 1).contiguous(), tp_group)
    own_target = target.flatten().chunk(world)[rank]
    log_probs = torch.log_softmax(filtered(rows, top_k, top_p).to(torch.float32), dim=1)
    own = log_probs.gather(1, own_target.unsqueeze(1)).flatten()
    result = own.new_empty(target.numel())
    dist.all_gather_into_tensor(result, own, group=tp_group)
    return result.view(target.shape)


PROBLEM = Problem(
    category="Vocab Parallel",
    source="token log-probabilities under top-k and top-p sampling, tensor parallel (NeMo-RL)",
    sizes={"tiny": Size(12, 32), "paper": Size(8, 256), "large": Size(4096, 131072)},
    requires={
        "the N columns of the vocabulary are split over the ranks": lambda case: case.n % case.world == 0,
        "the vocabulary needs at least 32 columns": lambda case: case.n >= 32,
    },
    deviations={
        "values": (
            "of the largest logits top-p keeps two to four by a margin, and targets are random, half of them among "
            "those; the published target is always the largest logit"
        ),
        "variants": "later trials pose other `top_k` and `top_p`, none and beyond the vocabulary too",
    },
)


def inputs(case):
    return *logits_and_targets(case), None, *filters(case)


def cost(case):
    # The reference sends all logits to the tokens' owners, and sorts and normalises whole rows there.
    return log_prob_cost(case)


def top_p_ignored(logits, target, tp_group=None, top_k=None, top_p=1.0):
    return solution(logits, target, tp_group, top_k, 1.0)


def top_k_ignored(logits, target, tp_group=None, top_k=None, top_p=1.0):
    return solution(logits, target, tp_group, None, top_p)


def not_normalised_again(logits, target, tp_group=None, top_k=None, top_p=1.0):
    result = solution(logits, target, tp_group, top_k, top_p)
    plain = solution(logits, target, tp_group)
    return torch.where(result.isfinite(), plain, result)


def columns_in_another_order(logits, target, tp_group=None, top_k=None, top_p=1.0):
    return solution(logits.flip(2), target, tp_group, top_k, top_p)


MUTANTS = {
    "top_p_ignored": top_p_ignored,
    "top_k_ignored": top_k_ignored,
    "not_normalised_again": not_normalised_again,
    "columns_in_another_order": columns_in_another_order,
}
