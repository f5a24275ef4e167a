"""Split sizes for a mixture-of-experts dispatch, from each rank's own routing.

`expert_mask` [experts, choices, tokens] counts how often a token's choice is an expert; a token that chooses an expert
twice counts twice. Rank i of the group owns the i-th block of experts. Returns, all on the CPU: rows to send to each
rank (int64), rows to receive from each rank (int64), counts by source rank and own expert, and their sums over the
sources. The counts have the dtype of a sum over the mask: float32 for float32, int64 for whole numbers. The mask is
not in the dtype of the run.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def solution(
    expert_mask: torch.Tensor, num_experts: int, group: dist.ProcessGroup | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    counts = expert_mask.sum(dim=(1, 2))
    sent = counts.view(world, -1).sum(dim=1)

    gathered = counts.new_empty(world * num_experts)
    dist.all_gather_into_tensor(gathered, counts, group=group)
    by_source = gathered.view(world, world, -1)[:, rank].contiguous()
    received = by_source.sum(dim=1)
    return sent.to(torch.int64).cpu(), received.to(torch.int64).cpu(), by_source.cpu(), by_source.sum(dim=0).cpu()


PROBLEM = Problem(
    category="Expert Parallel",
    source="token counts before the all-to-all of a MoE layer (VeOmni)",
    sizes={"tiny": Size(32, 1), "paper": Size(1024, 1024), "large": Size(131072, 1)},
    exact=True,
    requires={"the 8 experts are split evenly over the ranks": lambda case: EXPERTS % case.world == 0},
    deviations={
        "sizes": "rank r has M - r tokens in `expert_mask`, not M",
        "values": "preferences for experts differ between ranks",
        "variants": (
            "in later trials no token goes to one expert, most go to one, and the mask holds integers; published "
            "masks are always float32"
        ),
    },
)

EXPERTS, CHOICES = 8, 2
SPARED_TRIAL, HOT_TRIAL, INT_TRIAL = 1, 2, 3


def tokens(case):
    """Every rank holds another number of them."""
    return max(1, case.m - case.rank)


def inputs(case):
    # Preferences that differ by rank; by turns an expert that nobody chooses, and one that most choose.
    preference = case.randn(EXPERTS, dtype=torch.float32)
    special = case.shared.integer(0, EXPERTS)
    preference[special] += {SPARED_TRIAL: -torch.inf, HOT_TRIAL: 4.0}.get(case.trial, 0.0)
    # The largest of preferences with Gumbel noise is a sample of their softmax.
    noise = -(-case.rand(tokens(case), CHOICES, EXPERTS, low=1e-6, dtype=torch.float32).log()).log()
    chosen = (preference + noise).argmax(dim=-1)
    one_hot = torch.nn.functional.one_hot(chosen, EXPERTS)
    mask = one_hot if case.trial == INT_TRIAL else one_hot.to(torch.float32)
    return mask.permute(2, 1, 0), EXPERTS


def cost(case):
    itemsize = 8 if case.trial == INT_TRIAL else 4
    elements = EXPERTS * CHOICES * tokens(case)
    # The reference gathers all counts, though a peer needs only those of its own experts.
    crossing = (case.world - 1) * EXPERTS / case.world * itemsize
    return Cost(
        flops=0 if case.trial == INT_TRIAL else elements,
        hbm=elements * itemsize,
        link=Link(crossing, crossing),
    )


def repeated_choice_counted_once(expert_mask, num_experts, group=None):
    return solution(expert_mask.amax(dim=1, keepdim=True), num_experts, group)


def sent_in_place_of_received(expert_mask, num_experts, group=None):
    sent, _, by_source, totals = solution(expert_mask, num_experts, group)
    return sent, sent.clone(), by_source, totals


def own_counts_from_every_source(expert_mask, num_experts, group=None):
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    counts = expert_mask.sum(dim=(1, 2)).view(world, -1)
    by_source = counts[rank].repeat(world, 1).cpu()
    sent = counts.sum(dim=1).to(torch.int64).cpu()
    return sent, by_source.sum(dim=1).to(torch.int64), by_source, by_source.sum(dim=0)


MUTANTS = {
    "repeated_choice_counted_once": repeated_choice_counted_once,
    "sent_in_place_of_received": sent_in_place_of_received,
    "own_counts_from_every_source": own_counts_from_every_source,
}
