"""Mixture-of-experts layer with one expert per rank: tokens travel to their two experts and back.

Every rank routes its own tokens with its own router. The weights are the softmax's probabilities as they are, not
renormalised over the chosen experts. The expert of rank r is down(silu(gate(x)) * up(x)) with that rank's linear
layers, biases included. Leading dims of `hidden_states` are flattened; the result has two dims.
"""

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
    order = experts.flatten().argsort(stable=True)
    token = order // top_k

    world = dist.get_world_size(group)
    owner = experts.flatten() // (num_experts // world)
    counts = torch.bincount(owner, minlength=world)
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts, group=group)
    sent, received = counts.tolist(), arriving.tolist()

    arrived = exchanged(x[token], sent, received, group)
    expert_output = down_proj(F.silu(gate_proj(arrived)) * up_proj(arrived))
    returned = exchanged(expert_output, received, sent, group)
    return torch.zeros_like(x).index_add_(0, token, returned * weights.flatten()[order].unsqueeze(1))


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
        "scalars": "`top_k` is at most the number of experts, so that one rank works",
        "variants": (
            "in later trials `gate_bias` is None, or leaves an expert without tokens or gives one most, and "
            "`hidden_states` has three dims"
        ),
    },
)

TOP_K = 2


def inputs(case):
    return layer_inputs(case, experts=case.world, top_k=min(TOP_K, case.world))


def cost(case):
    # For many tokens the expert travels to them, which is far less than the reference sends.
    return layer_cost(case, experts=case.world, ranks=case.world, visits=min(TOP_K, case.world) * case.m)


def second_expert_ignored(*args):
    *most, top_k, group = args
    return solution(*most, top_k - 1, group)


def weights_renormalised(hidden_states, gate_weight, gate_bias, *rest):
    *_, top_k, _ = rest
    weights, _ = route(hidden_states.flatten(0, -2), gate_weight, gate_bias, top_k)
    return solution(hidden_states, gate_weight, gate_bias, *rest) / weights.sum(dim=-1, keepdim=True)


def own_expert_for_all(hidden_states, gate_weight, gate_bias, gate_proj, up_proj, down_proj, experts, top_k, group):
    x = hidden_states.flatten(0, -2)
    weights, _ = route(x, gate_weight, gate_bias, top_k)
    return down_proj(F.silu(gate_proj(x)) * up_proj(x)) * weights.sum(dim=-1, keepdim=True)


def router_bias_ignored(hidden_states, gate_weight, gate_bias, *rest):
    return solution(hidden_states, gate_weight, None, *rest)


MUTANTS = {
    "second_expert_ignored": second_expert_ignored,
    "weights_renormalised": weights_renormalised,
    "own_expert_for_all": own_expert_for_all,
    "router_bias_ignored": router_bias_ignored,
}
