"""Inputs and costs of log-probabilities under top-k and top-p sampling, with the vocabulary spread over the ranks."""

# torch is imported on use: `pkb list` computes costs without it.
import math

from pkb import Cost, link

BATCH = 2
TOP_K, TOP_P = 10, 0.9
# The largest logits of a row, which are placed one by one.
HEAD = 16


def filters(case):
    """Return top_k and top_p of the trial; the first are the published ones."""
    return [(TOP_K, TOP_P), (None, 1.0), (TOP_K, 1.0), (None, TOP_P), (case.n + 3, TOP_P)][case.trial % 5]


def shape(case):
    """Return the sequence length, M rounded up to a multiple of the world size, and this rank's columns."""
    return -(-case.m // case.world) * case.world, case.n // case.world


def head_values(case, survivors):
    """Draw the largest log-probabilities of every row, of which top-p keeps the first `survivors`.

    Two to four of them lie 0.2 to 0.4 apart and share 96 % of the probability, an eighth or more each. The others
    fall by 0.25 each and have less than 3 % together, the rest of the row less than 1 %: summed from below, the
    probability jumps over 1 - top_p, wherever top-k cuts.
    """
    import torch

    place = torch.arange(HEAD, device=case.device)
    falling = -case.shared.rand(survivors.shape[0], HEAD, low=0.2, high=0.4, dtype=torch.float32).cumsum(dim=1)
    surviving = falling.masked_fill(place >= survivors, float("-inf")).log_softmax(dim=1)
    return torch.where(place < survivors, surviving, math.log(0.006) - 0.25 * (place - survivors))


def head_columns(case, tokens):
    """Draw columns that are spread over the vocabulary or, in half of the rows, next to each other."""
    import torch

    shared = case.shared
    order = shared.rand(tokens, HEAD, dtype=torch.float32).argsort(dim=1)
    spread = order * (case.n // HEAD) + shared.randint(0, case.n // HEAD, tokens, HEAD)
    crowded = (order + shared.randint(0, case.n, tokens, 1)) % case.n
    return torch.where(shared.randint(0, 2, tokens, 1) == 0, spread, crowded)


def targets(case, columns, survivors):
    """Draw targets: half survive the filter, a quarter lie in the head, a quarter anywhere."""
    import torch

    shared, tokens = case.shared, columns.shape[0]
    surviving = columns.gather(1, shared.randint(0, 12, tokens, 1) % survivors)
    in_head = columns.gather(1, shared.randint(0, HEAD, tokens, 1))
    anywhere = shared.randint(0, case.n, tokens, 1)
    kind = shared.randint(0, 4, tokens, 1)
    return torch.where(kind < 2, surviving, torch.where(kind == 2, in_head, anywhere)).flatten()


def logits_and_targets(case):
    import torch

    length, width = shape(case)
    tokens = BATCH * length
    survivors = case.shared.randint(2, 5, tokens, 1)
    values, columns = head_values(case, survivors), head_columns(case, tokens)
    logits = math.log(0.005 / case.n) - case.rand(tokens, width, dtype=torch.float32)
    own = columns - case.rank * width
    row, place = ((own >= 0) & (own < width)).nonzero(as_tuple=True)
    logits[row, own[row, place]] = values[row, place]
    logits += case.shared.rand(tokens, 1, low=2.0, high=5.0, dtype=torch.float32)
    target = targets(case, columns, survivors)
    return logits.to(case.dtype).view(BATCH, length, width), target.view(BATCH, length)


def candidates_link(case):
    """Return the bytes that bring the candidates of every token to its owner.

    The k largest of each rank are enough, or without top-k at least a sum and the target's logit.
    """
    length, width = shape(case)
    top_k, _ = filters(case)
    candidates = min(top_k if top_k and top_k < case.n else 2, width)
    return link.all_to_all(BATCH * length * candidates * case.itemsize, case.world)


def log_prob_cost(case):
    length, width = shape(case)
    tokens = BATCH * length
    return Cost(
        # One comparison for every logit.
        flops=tokens * width,
        hbm=tokens * (width * case.itemsize + 8 + 4),
        link=candidates_link(case) + link.all_gather(4 * tokens, case.world),
    )


def sequence_length(case):
    """Return M, rounded up to a multiple of the world size."""
    return -(-case.m // case.world) * case.world


def chunk_size(case):
    """Return a quarter of a sequence; in odd trials two thirds, so that the last chunk is shorter."""
    length = sequence_length(case)
    wanted = length * 2 // 3 if case.trial % 2 else length // 4
    return min(length, -(-max(wanted, case.world) // case.world) * case.world)
