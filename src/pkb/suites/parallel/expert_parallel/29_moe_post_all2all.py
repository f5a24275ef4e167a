"""Combine of a mixture-of-experts layer: expert outputs return to their tokens and are summed with routing weights.

The inverse of the dispatch, whose `input_splits` and `output_splits` (rows it sent to and received from each rank)
are given: now `output_splits` rows are sent and `input_splits` received. `num_global_tokens_per_local_expert`
[sources, local experts] cuts `expert_outputs` into runs, expert by expert with the sources of each in order; they are
sent source by source. These sizes alone decide about cuts. The q-th row received belongs to the token
local_input_permutation_mapping[q] and to the q-th non-zero entry of `routing_map` [experts, tokens], expert by expert:
its weight is the sum of the token's `routing_weights` whose `selected_experts` is that expert.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link
from pkb.suites.parallel._shared.moe_dispatch import CHOICES, EXPERTS, dispatch_sizes, even_flow, routing


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
    deviations={
        "sizes": (
            "rank r has M - r tokens, so that `expert_outputs`, `routing_weights`, `selected_experts`, `routing_map`, "
            "`local_input_permutation_mapping` and `org_hidden_states_shape` differ between ranks"
        ),
        "values": (
            "`input_splits`, `output_splits` and the counts follow from the routing, except in one trial; a token's "
            "weights do not add up to 1, so that neither follows from the other"
        ),
        "variants": "in later trials one expert gets no token, one gets most, and ranks prefer different experts",
    },
)


def inputs(case):
    chosen = [experts.sort(dim=-1).values for experts in routing(case)]
    selected = chosen[case.rank]
    sent, received, counts = dispatch_sizes(case, chosen)
    expert_outputs = case.randn(sum(received), case.n)
    # Weights that do not add up to one: neither follows from the other.
    weights = case.rand(*selected.shape, low=0.25, high=1.25)
    routing_map = torch.nn.functional.one_hot(selected, EXPERTS).sum(dim=1).T != 0
    mapping = routing_map.nonzero()[:, 1]
    shape = torch.Size([selected.shape[0], case.n])
    return expert_outputs, weights, selected, EXPERTS, sent, received, counts, routing_map, mapping, shape


def cost(case):
    # A rank may sum what a token gets from its experts: the rows of the dispatch, the other way.
    own, received, leaving, entering = even_flow(case)
    return Cost(
        flops=(2 * CHOICES - 1) * own * case.n,
        hbm=(received + own) * case.n * case.itemsize + CHOICES * own * (case.itemsize + 8),
        link=Link(egress=entering, ingress=leaving),
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
