"""Combine of a mixture-of-experts layer: expert outputs return to their tokens and are summed with routing weights.

The inverse of the dispatch, whose `input_splits` and `output_splits` (rows it sent to and received from each rank)
are given: now `output_splits` rows are sent and `input_splits` received. `num_global_tokens_per_local_expert`
[sources, local experts] cuts `expert_outputs` into runs, expert by expert with the sources of each in order; they are
sent source by source. These sizes alone decide about cuts. The q-th row received belongs to the token
local_input_permutation_mapping[q] and to the q-th non-zero entry of `routing_map` [experts, tokens], expert by expert:
its weight is the sum of the token's `routing_weights` whose `selected_experts` is that expert.
"""

import math

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.cost import Link


def exchange(rows: torch.Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup | None) -> torch.Tensor:
    if dist.get_world_size(group) == 1:
        return rows
    result = rows.new_empty(sum(received), rows.shape[1])
    dist.all_to_all_single(result, rows, received, sent, group=group)
    return result


def sort_by_source(rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Runs of rows, expert by expert with lengths counts[source, expert], rearranged source by source."""
    sources, experts = counts.shape
    runs = rows.split(counts.T.reshape(-1).tolist())
    return torch.cat([runs[expert * sources + source] for source in range(sources) for expert in range(experts)])


def weights_by_expert(routing_weights: torch.Tensor, selected_experts: torch.Tensor, num_experts: int) -> torch.Tensor:
    """Weight of each expert for each token, [experts, tokens]."""
    weights = routing_weights.new_zeros(routing_weights.shape[0], num_experts)
    return weights.scatter_add_(1, selected_experts, routing_weights).T


def solution(
    expert_outputs: torch.Tensor,
    routing_weights: torch.Tensor,
    selected_experts: torch.Tensor,
    num_experts: int,
    input_splits: list[int],
    output_splits: list[int],
    num_global_tokens_per_local_expert: torch.Tensor,
    routing_map: torch.Tensor,
    local_input_permutation_mapping: torch.Tensor,
    org_hidden_states_shape: torch.Size,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    counts = num_global_tokens_per_local_expert.reshape(-1, num_experts // dist.get_world_size(group))
    rows = exchange(sort_by_source(expert_outputs, counts), output_splits, input_splits, group)
    weights = weights_by_expert(routing_weights, selected_experts, num_experts)[routing_map != 0]
    weighted = rows * weights.unsqueeze(1)
    return weighted.new_zeros(org_hidden_states_shape).index_add_(0, local_input_permutation_mapping, weighted)


PROBLEM = Problem(
    category="Expert Parallel",
    source="token combine of a MoE layer (VeOmni; Megatron-LM's all-to-all dispatcher)",
    sizes={"tiny": Size(32, 16), "paper": Size(1024, 1024), "large": Size(32768, 7168)},
    requires={"the 8 experts are split evenly over the ranks": lambda case: EXPERTS % case.world == 0},
)

EXPERTS, CHOICES = 8, 2
SPARED_TRIAL, HOT_TRIAL, SKEWED_TRIAL, UNRELATED_TRIAL = 1, 2, 3, 4


def inputs(case):
    chosen = routing(case)
    selected = chosen[case.rank]
    sent, received, counts = unrelated_sizes(case) if case.trial == UNRELATED_TRIAL else sizes_of(case, chosen)
    expert_outputs = case.randn(sum(received), case.n)
    # Weights that do not add up to one: neither follows from the other.
    weights = case.rand(*selected.shape, low=0.25, high=1.25)
    routing_map = torch.nn.functional.one_hot(selected, EXPERTS).sum(dim=1).T != 0
    mapping = routing_map.nonzero()[:, 1]
    shape = torch.Size([selected.shape[0], case.n])
    return expert_outputs, weights, selected, EXPERTS, sent, received, counts, routing_map, mapping, shape


def tokens(case, rank):
    """Every rank holds another number of them."""
    return max(1, case.m - rank)


def routing(case):
    """Two experts for each token of each rank, [tokens, 2] by rank: known to all, as sizes depend on all of it."""
    preference = torch.zeros(case.world, 1, EXPERTS, device=case.device)
    special = case.shared.integer(0, EXPERTS)
    preference[..., special] += {SPARED_TRIAL: -torch.inf, HOT_TRIAL: 4.0}.get(case.trial, 0.0)
    if case.trial == SKEWED_TRIAL:
        preference += case.shared.randn(case.world, 1, EXPERTS, scale=2.0, dtype=torch.float32)
    # The largest of preferences with Gumbel noise are a sample without repetition.
    noise = -(-case.shared.rand(case.world, case.m, EXPERTS, low=1e-6, dtype=torch.float32).log()).log()
    chosen = (preference + noise).topk(CHOICES, dim=-1).indices.sort(dim=-1).values
    return [chosen[rank, : tokens(case, rank)].contiguous() for rank in range(case.world)]


def sizes_of(case, chosen):
    """Rows that the dispatch sends and receives by rank, and receives by source and own expert."""
    counts = torch.stack([torch.bincount(experts.flatten(), minlength=EXPERTS) for experts in chosen])
    counts = counts.view(case.world, case.world, -1)
    sent, received = counts[case.rank].sum(dim=1), counts[:, case.rank].sum(dim=1)
    return sent.tolist(), received.tolist(), counts[:, case.rank].contiguous()


def unrelated_sizes(case):
    """Sizes that fit each other, but not the routing."""
    owners = [case.shared.randint(0, case.world, CHOICES * tokens(case, rank)) for rank in range(case.world)]
    lengths = torch.stack([torch.bincount(owner, minlength=case.world) for owner in owners])
    received = lengths[:, case.rank]
    slots = case.randint(0, EXPERTS, int(received.sum()))
    counts = torch.bincount(slots, minlength=EXPERTS).view(case.world, -1)
    return lengths[case.rank].tolist(), received.tolist(), counts


def cost(case):
    row = case.n * case.itemsize
    # Even routing. A rank may sum what a token gets from its experts before one row crosses.
    elsewhere = math.comb(EXPERTS - EXPERTS // case.world, CHOICES) / math.comb(EXPERTS, CHOICES)
    own = tokens(case, case.rank)
    others = sum(tokens(case, rank) for rank in range(case.world)) - own
    received = CHOICES * (own + others) / case.world
    return Cost(
        flops=(2 * CHOICES - 1) * own * case.n,
        hbm=(received + own) * row + CHOICES * own * (case.itemsize + 8),
        link=Link(others * (1 - elsewhere) * row, own * (case.world - 1) * (1 - elsewhere) * row),
    )


def weights_left_out(expert_outputs, routing_weights, *rest):
    return solution(expert_outputs, torch.ones_like(routing_weights), *rest)


def weights_in_token_order(expert_outputs, routing_weights, selected_experts, *rest):
    num_experts, routing_map = rest[0], rest[4]
    in_order = weights_by_expert(routing_weights, selected_experts, num_experts).T[routing_map.T != 0]
    dense = torch.zeros_like(routing_map, dtype=in_order.dtype)
    dense[routing_map != 0] = in_order
    return solution(expert_outputs, dense.T.gather(1, selected_experts), selected_experts, *rest)


def second_expert_dropped(expert_outputs, routing_weights, *rest):
    return solution(expert_outputs, torch.cat([routing_weights[:, :1], 0 * routing_weights[:, 1:]], dim=1), *rest)


def counts_read_by_source(
    expert_outputs, routing_weights, selected_experts, num_experts, sent, received, counts, *rest
):
    swapped = counts.reshape(counts.T.shape).T
    return solution(expert_outputs, routing_weights, selected_experts, num_experts, sent, received, swapped, *rest)


MUTANTS = {
    "weights_left_out": weights_left_out,
    "weights_in_token_order": weights_in_token_order,
    "second_expert_dropped": second_expert_dropped,
    "counts_read_by_source": counts_read_by_source,
}
