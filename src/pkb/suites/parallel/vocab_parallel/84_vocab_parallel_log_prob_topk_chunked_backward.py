"""Gradient of the filtered tokens' log-probabilities with respect to the logits, with the vocabulary spread.

Every rank sees all tokens and their incoming gradients, but only its columns of the logits, for which it returns
the gradient in float32. The logits of a token are filtered by top-k and top-p as in sampling, in their own dtype;
filtered ones have gradient 0, also a target that is filtered away. A chunk is `batch * chunk_size` consecutive
tokens of the flattened batch; the last may be shorter. Chunks have no influence on the result. No logit ties with
a cut, and no sum of probabilities comes near 1 - top_p. grad_output is bfloat16 whatever the dtype of the run.
"""

import math

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


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
)

BATCH = 2
TOP_K, TOP_P = 10, 0.9
# The largest logits of a row, which are placed one by one.
HEAD = 16


def filters(case):
    """top_k and top_p of each trial; the first are the published ones."""
    return [(TOP_K, TOP_P), (None, 1.0), (TOP_K, 1.0), (None, TOP_P), (case.n + 3, TOP_P)][case.trial % 5]


def sequence_length(case):
    """M, rounded up to a multiple of the world size."""
    return -(-case.m // case.world) * case.world


def chunk_size(case):
    """A quarter of a sequence; in odd trials two thirds, so that the last chunk is shorter."""
    length = sequence_length(case)
    wanted = length * 2 // 3 if case.trial % 2 else length // 4
    return min(length, -(-max(wanted, case.world) // case.world) * case.world)


def head(case, tokens):
    """Of every row the largest log-probabilities and their columns, and how many of them top-p lets through.

    Two to four of them lie 0.2 to 0.4 apart and share 96 % of the probability, an eighth or more each. The others
    fall by 0.25 each and have less than 3 % together, the rest of the row less than 1 %: summed from below, the
    probability jumps over 1 - top_p, wherever top-k cuts. The columns are spread over the vocabulary or, in half
    of the rows, all next to each other.
    """
    shared, place = case.shared, torch.arange(HEAD, device=case.device)
    survivors = shared.randint(2, 5, tokens, 1)
    falling = -shared.rand(tokens, HEAD, low=0.2, high=0.4, dtype=torch.float32).cumsum(dim=1)
    surviving = falling.masked_fill(place >= survivors, float("-inf")).log_softmax(dim=1)
    values = torch.where(place < survivors, surviving, math.log(0.006) - 0.25 * (place - survivors))

    order = shared.rand(tokens, HEAD, dtype=torch.float32).argsort(dim=1)
    spread = order * (case.n // HEAD) + shared.randint(0, case.n // HEAD, tokens, HEAD)
    crowded = (order + shared.randint(0, case.n, tokens, 1)) % case.n
    columns = torch.where(shared.randint(0, 2, tokens, 1) == 0, spread, crowded)
    return values, columns, survivors


def targets(case, columns, survivors):
    """Half are tokens that survive the filter, a quarter lie in the head, a quarter anywhere."""
    shared, tokens = case.shared, columns.shape[0]
    surviving = columns.gather(1, shared.randint(0, 12, tokens, 1) % survivors)
    in_head = columns.gather(1, shared.randint(0, HEAD, tokens, 1))
    anywhere = shared.randint(0, case.n, tokens, 1)
    kind = shared.randint(0, 4, tokens, 1)
    return torch.where(kind < 2, surviving, torch.where(kind == 2, in_head, anywhere)).flatten()


def logits_and_targets(case):
    length, width = sequence_length(case), case.n // case.world
    tokens = BATCH * length
    values, columns, survivors = head(case, tokens)
    logits = math.log(0.005 / case.n) - case.rand(tokens, width, dtype=torch.float32)
    own = columns - case.rank * width
    row, place = ((own >= 0) & (own < width)).nonzero(as_tuple=True)
    logits[row, own[row, place]] = values[row, place]
    logits += case.shared.rand(tokens, 1, low=2.0, high=5.0, dtype=torch.float32)
    target = targets(case, columns, survivors)
    return logits.to(case.dtype).view(BATCH, length, width), target.view(BATCH, length)


def inputs(case):
    logits, target = logits_and_targets(case)
    grad_output = case.shared.randn(*target.shape, dtype=torch.bfloat16)
    return logits, target, grad_output, None, *filters(case), chunk_size(case)


def cost(case):
    tokens, width = BATCH * sequence_length(case), case.n // case.world
    top_k, _ = filters(case)
    # The reference sends all logits to the tokens' owners and all gradients back. The k largest of each rank are
    # enough (without top-k at least a sum and the target's logit), then two cuts and a normaliser for each token.
    candidates = min(top_k if top_k and top_k < case.n else 2, width)
    return Cost(
        # A comparison and a product for every logit. The reference sorts and normalises whole rows.
        flops=2 * tokens * width,
        hbm=tokens * (width * (case.itemsize + 4) + 8 + 2),
        link=link.all_to_all(tokens * candidates * case.itemsize, case.world)
        + link.all_gather(12 * tokens, case.world),
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
