"""Routing for the dispatch and the combine of a mixture-of-experts layer, and the rows that it moves."""

# torch is imported on use: `pkb list` computes costs without it.
import math

EXPERTS, CHOICES = 8, 2
SPARED_TRIAL, HOT_TRIAL, SKEWED_TRIAL, UNRELATED_TRIAL = 1, 2, 3, 4


def tokens(case, rank):
    """Return the number of a rank's tokens, which differs between ranks."""
    return max(1, case.m - rank)


def routing(case):
    """Draw two experts for each token, [tokens, 2] by rank: known to all, because sizes depend on all of it."""
    import torch

    preference = torch.zeros(case.world, 1, EXPERTS, device=case.device)
    special = case.shared.integer(0, EXPERTS)
    preference[..., special] += {SPARED_TRIAL: -torch.inf, HOT_TRIAL: 4.0}.get(case.trial, 0.0)
    if case.trial == SKEWED_TRIAL:
        preference += case.shared.randn(case.world, 1, EXPERTS, scale=2.0, dtype=torch.float32)
    # The largest of preferences with Gumbel noise are a sample without repetition.
    noise = -(-case.shared.rand(case.world, case.m, EXPERTS, low=1e-6, dtype=torch.float32).log()).log()
    chosen = (preference + noise).topk(CHOICES, dim=-1).indices
    return [chosen[rank, : tokens(case, rank)] for rank in range(case.world)]


def dispatch_sizes(case, chosen):
    """Return the rows that the dispatch sends and receives by rank, and receives by source and own expert."""
    return unrelated_sizes(case) if case.trial == UNRELATED_TRIAL else count_sizes(case, chosen)


def count_sizes(case, chosen):
    import torch

    counts = torch.stack([torch.bincount(experts.flatten(), minlength=EXPERTS) for experts in chosen])
    counts = counts.view(case.world, case.world, -1)
    sent, received = counts[case.rank].sum(dim=1), counts[:, case.rank].sum(dim=1)
    return sent.tolist(), received.tolist(), counts[:, case.rank].contiguous()


def unrelated_sizes(case):
    """Draw sizes that fit each other, but not the routing."""
    import torch

    owners = [case.shared.randint(0, case.world, CHOICES * tokens(case, rank)) for rank in range(case.world)]
    lengths = torch.stack([torch.bincount(owner, minlength=case.world) for owner in owners])
    received = lengths[:, case.rank]
    slots = case.randint(0, EXPERTS, int(received.sum()))
    counts = torch.bincount(slots, minlength=EXPERTS).view(case.world, -1)
    return lengths[case.rank].tolist(), received.tolist(), counts


def even_flow(case):
    """Return for even routing: own tokens, rows of the own experts, and the least bytes out and in of the dispatch.

    A token crosses once to each rank that owns one of its experts.
    """
    row = case.n * case.itemsize
    elsewhere = math.comb(EXPERTS - EXPERTS // case.world, CHOICES) / math.comb(EXPERTS, CHOICES)
    own = tokens(case, case.rank)
    others = sum(tokens(case, rank) for rank in range(case.world)) - own
    received = CHOICES * (own + others) / case.world
    return own, received, own * (case.world - 1) * (1 - elsewhere) * row, others * (1 - elsewhere) * row
