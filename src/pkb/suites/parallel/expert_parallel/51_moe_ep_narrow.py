"""Mixture-of-experts layer with fewer experts than ranks: blocks of ranks each hold a full set of experts.

Without an explicit group and with fewer experts than ranks, consecutive blocks of `num_experts` ranks form the
groups, one expert per rank, and nothing crosses between blocks: each has weights of its own. Every rank
routes its own tokens with its own router. The weights are the softmax's probabilities as they are, not
renormalised over the chosen experts. An expert is down(silu(gate(x)) * up(x)) with its rank's linear layers,
biases included. Leading dims of `hidden_states` are flattened; the result has two dims. With 1 or 2 ranks there is
a single expert per block and nothing to exchange.
"""

from functools import cache

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Problem, Size
from pkb.suites.parallel._shared.moe_layer import layer_cost, layer_inputs


def route(
    x: torch.Tensor, gate_weight: torch.Tensor, gate_bias: torch.Tensor | None, top_k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    probabilities = F.linear(x, gate_weight, gate_bias).softmax(dim=-1)
    return probabilities.topk(top_k, dim=-1)


def exchanged(
    rows: torch.Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup | None
) -> torch.Tensor:
    arrived = rows.new_empty(sum(received), rows.shape[1])
    dist.all_to_all_single(arrived, rows, received, sent, group=group)
    return arrived


@cache
def own_block(world: int, size: int) -> dist.ProcessGroup:
    group, _ = dist.new_subgroups_by_enumeration(torch.arange(world).view(-1, size).tolist())
    return group


def expert_group(num_experts: int, group: dist.ProcessGroup | None) -> dist.ProcessGroup | None:
    world = dist.get_world_size()
    if group is not None or num_experts >= world:
        return group
    if world % num_experts:
        raise ValueError(f"{world} ranks do not form blocks of {num_experts}")
    return own_block(world, num_experts)


def weighted_expert_outputs(
    x: torch.Tensor,
    weights: torch.Tensor,
    owners: torch.Tensor,
    projections: tuple[torch.nn.Linear, torch.nn.Linear, torch.nn.Linear],
    group: dist.ProcessGroup | None,
) -> torch.Tensor:
    order = owners.flatten().argsort(stable=True)
    token = order // owners.shape[1]
    counts = torch.bincount(owners.flatten(), minlength=dist.get_world_size(group))
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts, group=group)
    sent, received = counts.tolist(), arriving.tolist()

    gate_proj, up_proj, down_proj = projections
    arrived = exchanged(x[token], sent, received, group)
    expert_output = down_proj(F.silu(gate_proj(arrived)) * up_proj(arrived))
    returned = exchanged(expert_output, received, sent, group)
    return torch.zeros_like(x).index_add_(0, token, returned * weights.flatten()[order].unsqueeze(1))


@torch.no_grad()
def solution(
    hidden_states: torch.Tensor,
    gate_weight: torch.Tensor,
    gate_bias: torch.Tensor | None,
    gate_proj: torch.nn.Linear,
    up_proj: torch.nn.Linear,
    down_proj: torch.nn.Linear,
    num_experts: int,
    top_k: int,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    x = hidden_states.flatten(0, -2)
    weights, experts = route(x, gate_weight, gate_bias, top_k)
    group = expert_group(num_experts, group)
    owners = experts // (num_experts // dist.get_world_size(group))
    return weighted_expert_outputs(x, weights, owners, (gate_proj, up_proj, down_proj), group)


PROBLEM = Problem(
    category="Expert Parallel",
    source="the expert-parallel MoE layer of VeOmni",
    sizes={"tiny": Size(32, 40), "paper": Size(1024, 1024), "large": Size(16384, 7168)},
    deviations={
        "values": (
            "the router has small weights, and tokens that rounding could send to another expert are not drawn; with "
            "the published normal weights a token's second expert counts for almost nothing; experts' outputs are of "
            "order 1"
        ),
        "scalars": "`top_k` is 1 in two trials: of two experts there is no choice otherwise",
        "variants": (
            "in later trials `gate_bias` is None, or leaves an expert without tokens or gives one most, and "
            "`hidden_states` has three dims"
        ),
    },
)


def layout(case):
    """Experts, the largest divisor of the world size up to its half, and how many of them a token goes to."""
    experts = next((e for e in range(case.world // 2, 1, -1) if case.world % e == 0), 1)
    # In two trials a token goes to one expert only: of two experts there is no choice otherwise.
    return experts, 1 if case.trial in (1, 2) else min(2, experts)


def inputs(case):
    return layer_inputs(case, *layout(case))


def cost(case):
    experts, top_k = layout(case)
    # For many tokens the expert travels to them, which is far less than the reference sends.
    return layer_cost(case, experts, ranks=experts, visits=top_k * case.m)


def experts_of_the_first_block(hidden_states, gate_weight, gate_bias, *rest):
    *projections, _, top_k, group = rest
    x = hidden_states.flatten(0, -2)
    weights, experts = route(x, gate_weight, gate_bias, top_k)
    return weighted_expert_outputs(x, weights, experts, projections, group)


def own_expert_for_all(hidden_states, gate_weight, gate_bias, *rest):
    gate_proj, up_proj, down_proj, _, top_k, _ = rest
    x = hidden_states.flatten(0, -2)
    weights, _ = route(x, gate_weight, gate_bias, top_k)
    return down_proj(F.silu(gate_proj(x)) * up_proj(x)) * weights.sum(dim=-1, keepdim=True)


def second_expert_ignored(*args):
    *most, _, group = args
    return solution(*most, 1, group)


def weights_renormalised(hidden_states, gate_weight, gate_bias, *rest):
    weights, _ = route(hidden_states.flatten(0, -2), gate_weight, gate_bias, rest[-2])
    return solution(hidden_states, gate_weight, gate_bias, *rest) / weights.sum(dim=-1, keepdim=True)


MUTANTS = {
    "experts_of_the_first_block": experts_of_the_first_block,
    "own_expert_for_all": own_expert_for_all,
    "second_expert_ignored": second_expert_ignored,
    "weights_renormalised": weights_renormalised,
}
