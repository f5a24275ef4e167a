"""Log-probabilities of given tokens under top-k and top-p sampling over a spread vocabulary, chunk by chunk.

Every rank sees all tokens but only its columns of the logits; all ranks end with all results. A chunk is
`batch * chunk_size` consecutive tokens of the flattened batch; the last may be shorter. Chunks bound the memory for
exchanged logits and have no influence on the result. The filter works in the dtype of the logits, the log-softmax
of what it leaves in float32. A target that is filtered away has log-probability -inf. Values equal to the k-th
largest stay. No logit ties with a cut, and no sum of probabilities comes near 1 - top_p.
"""

import torch
import torch.distributed as dist

from pkb import Problem, Size
from pkb.suites.parallel._shared.sampled_vocab import chunk_size, filters, log_prob_cost, logits_and_targets


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


def chunk_log_probs(
    logits: torch.Tensor,
    target: torch.Tensor,
    top_k: int | None,
    top_p: float | None,
    group: dist.ProcessGroup | None,
) -> torch.Tensor:
    rows = own_rows(logits.contiguous(), group)
    own_target = target.chunk(dist.get_world_size(group))[dist.get_rank(group)]
    log_probs = torch.log_softmax(filtered(rows, top_k, top_p).to(torch.float32), dim=1)
    own = log_probs.gather(1, own_target.unsqueeze(1)).flatten()
    result = own.new_empty(target.shape)
    dist.all_gather_into_tensor(result, own, group=group)
    return result


def solution(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    tp_group: dist.ProcessGroup | None = None,
    top_k: int | None = None,
    top_p: float = 1.0,
    chunk_size: int = 1,
) -> torch.Tensor:
    chunk = chunk_tokens(target, chunk_size, dist.get_world_size(tp_group))
    logits, flat = vocab_parallel_logits.flatten(0, 1).split(chunk), target.flatten().split(chunk)
    results = [chunk_log_probs(*part, top_k, top_p, tp_group) for part in zip(logits, flat, strict=True)]
    return torch.cat(results).view(target.shape)


PROBLEM = Problem(
    category="Vocab Parallel",
    source="token log-probabilities under top-k and top-p sampling, in chunks, tensor parallel (NeMo-RL)",
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
        "variants": (
            "later trials pose other `top_k` and `top_p`, none and beyond the vocabulary too, and a `chunk_size` that "
            "leaves a shorter last chunk"
        ),
    },
)


def inputs(case):
    return *logits_and_targets(case), None, *filters(case), chunk_size(case)


def cost(case):
    # The reference sends all logits to the tokens' owners, and sorts and normalises whole rows there.
    return log_prob_cost(case)


def top_p_ignored(logits, target, tp_group=None, top_k=None, top_p=1.0, chunk_size=1):
    return solution(logits, target, tp_group, top_k, 1.0, chunk_size)


def shorter_last_chunk_forgotten(logits, target, tp_group=None, top_k=None, top_p=1.0, chunk_size=1):
    result = solution(logits, target, tp_group, top_k, top_p, chunk_size)
    whole = target.numel() - target.numel() % (target.shape[0] * chunk_size)
    result.view(-1)[whole:] = 0
    return result


def chunks_cut_from_every_sequence(logits, target, tp_group=None, top_k=None, top_p=1.0, chunk_size=1):
    parts = zip(logits.split(chunk_size, dim=1), target.split(chunk_size, dim=1), strict=True)
    results = [solution(*part, tp_group, top_k, top_p, chunk_size).flatten() for part in parts]
    return torch.cat(results).view(target.shape)


def not_normalised_again(logits, target, tp_group=None, top_k=None, top_p=1.0, chunk_size=1):
    result = solution(logits, target, tp_group, top_k, top_p, chunk_size)
    plain = solution(logits, target, tp_group, None, 1.0, chunk_size)
    return torch.where(result.isfinite(), plain, result)


MUTANTS = {
    "top_p_ignored": top_p_ignored,
    "shorter_last_chunk_forgotten": shorter_last_chunk_forgotten,
    "chunks_cut_from_every_sequence": chunks_cut_from_every_sequence,
    "not_normalised_again": not_normalised_again,
}
