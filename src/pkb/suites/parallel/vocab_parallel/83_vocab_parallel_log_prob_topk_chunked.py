"""Log-probabilities of given tokens under top-k and top-p sampling over a spread vocabulary, chunk by chunk.

Every rank sees all tokens but only its columns of the logits; all ranks end with all results. A chunk is
`batch * chunk_size` consecutive tokens of the flattened batch; the last may be shorter. Chunks bound the memory for
exchanged logits and have no influence on the result. The filter works in the dtype of the logits, the log-softmax
of what it leaves in float32. A target that is filtered away has log-probability -inf. Values equal to the k-th
largest stay. No logit ties with a cut, and no sum of probabilities comes near 1 - top_p.
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
    return *logits_and_targets(case), None, *filters(case), chunk_size(case)


def cost(case):
    tokens, width = BATCH * sequence_length(case), case.n // case.world
    top_k, _ = filters(case)
    # The reference sends all logits to the tokens' owners. The k largest of each rank are enough, or without
    # top-k at least a sum and the target's logit.
    candidates = min(top_k if top_k and top_k < case.n else 2, width)
    return Cost(
        # One comparison for every logit. The reference sorts and normalises whole rows.
        flops=tokens * width,
        hbm=tokens * (width * case.itemsize + 8 + 4),
        link=link.all_to_all(tokens * candidates * case.itemsize, case.world) + link.all_gather(4 * tokens, case.world),
    )


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
