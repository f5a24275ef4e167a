"""Dispatch of a mixture-of-experts layer: rows are sorted by expert, exchanged, and sorted again by local expert.

Rank i of the group owns the i-th block of experts. Each token is sent once to every expert that `expert_mask` [experts,
choices, tokens] gives it: expert by expert, the tokens of each in ascending order. `input_splits` and `output_splits`
are the rows sent to and received from each rank. `num_global_tokens_per_local_expert` [sources, local experts] cuts the
received rows into runs, source by source; the result has them expert by expert, the sources of each in order. These
sizes alone decide about cuts: they need not follow from the mask. Returns the sorted rows, how often each expert has
each token [experts, tokens] in the dtype of a sum over the mask, the tokens in the order in which they were sent, and
the shape of the flattened hidden states.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link
from pkb.suites.parallel._shared.moe_dispatch import CHOICES, EXPERTS, dispatch_sizes, even_flow, routing, tokens


def exchange(rows: torch.Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup | None) -> torch.Tensor:
    if dist.get_world_size(group) == 1:
        return rows
    result = rows.new_empty(sum(received), rows.shape[1])
    dist.all_to_all_single(result, rows, received, sent, group=group)
    return result


def sort_by_expert(rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Runs of rows, source by source with lengths counts[source, expert], rearranged expert by expert."""
    sources, experts = counts.shape
    runs = rows.split(counts.reshape(-1).tolist())
    return torch.cat([runs[source * experts + expert] for expert in range(experts) for source in range(sources)])


def solution(
    hidden_states: torch.Tensor,
    expert_mask: torch.Tensor,
    num_experts: int,
    input_splits: list[int],
    output_splits: list[int],
    num_global_tokens_per_local_expert: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Size]:
    hidden = hidden_states.reshape(-1, hidden_states.shape[-1])
    routing_map = expert_mask.sum(dim=1)
    _, mapping = routing_map.nonzero(as_tuple=True)
    if sum(input_splits) != mapping.numel():
        raise RuntimeError(f"input_splits add up to {sum(input_splits)}, but {mapping.numel()} rows are routed")
    received = exchange(hidden[mapping], input_splits, output_splits, group)
    counts = num_global_tokens_per_local_expert.reshape(-1, num_experts // dist.get_world_size(group))
    return sort_by_expert(received, counts), routing_map, mapping, hidden.shape


PROBLEM = Problem(
    category="Expert Parallel",
    source="token dispatch of a MoE layer (VeOmni; Megatron-LM's all-to-all dispatcher)",
    sizes={"tiny": Size(32, 16), "paper": Size(1024, 1024), "large": Size(32768, 7168)},
    exact=True,
    requires={"the 8 experts are split evenly over the ranks": lambda case: EXPERTS % case.world == 0},
    deviations={
        "sizes": "rank r has M - r tokens (`hidden_states`, `expert_mask`), not M",
        "values": (
            "`input_splits`, `output_splits` and the counts follow from the routing, except in one trial; the "
            "published ones are equal and do not follow"
        ),
        "variants": "in later trials one expert gets no token, one gets most, and ranks prefer different experts",
    },
)


def inputs(case):
    chosen = routing(case)
    hidden = case.randn(tokens(case, case.rank), case.n)
    one_hot = torch.nn.functional.one_hot(chosen[case.rank], EXPERTS).to(torch.float32)
    return hidden, one_hot.permute(2, 1, 0), EXPERTS, *dispatch_sizes(case, chosen)


def cost(case):
    own, received, leaving, entering = even_flow(case)
    routed = EXPERTS * own * 4 * (CHOICES + 1) + 8 * CHOICES * own
    return Cost(
        flops=(CHOICES - 1) * EXPERTS * own,
        hbm=(own + received) * case.n * case.itemsize + routed,
        link=Link(egress=leaving, ingress=entering),
    )


def left_in_source_order(hidden_states, expert_mask, num_experts, input_splits, output_splits, counts, group=None):
    _, *rest = solution(hidden_states, expert_mask, num_experts, input_splits, output_splits, counts, group)
    return exchange(hidden_states[rest[1]], input_splits, output_splits, group), *rest


def counts_read_by_expert(hidden_states, expert_mask, num_experts, input_splits, output_splits, counts, group=None):
    transposed = counts.T.reshape(counts.shape)
    return solution(hidden_states, expert_mask, num_experts, input_splits, output_splits, transposed, group)


def sent_in_token_order(hidden_states, expert_mask, num_experts, input_splits, output_splits, counts, group=None):
    routing_map = expert_mask.sum(dim=1)
    mapping, _ = routing_map.T.nonzero(as_tuple=True)
    received = exchange(hidden_states[mapping], input_splits, output_splits, group)
    return sort_by_expert(received, counts), routing_map, mapping, hidden_states.shape


MUTANTS = {
    "left_in_source_order": left_in_source_order,
    "counts_read_by_expert": counts_read_by_expert,
    "sent_in_token_order": sent_in_token_order,
}
