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

from pkb import Cost, Problem, Size
from pkb.cost import Link


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
)

INNER = 128
ROUTER_SCALE = 0.6
LOGIT_MARGIN = 0.06


def layout(case):
    """Experts, the largest divisor of the world size up to its half, and how many of them a token goes to."""
    experts = next((e for e in range(case.world // 2, 1, -1) if case.world % e == 0), 1)
    # In two trials a token goes to one expert only: of two experts there is no choice otherwise.
    return experts, 1 if case.trial in (1, 2) else min(2, experts)


def linear(case, width_in, width_out, scale):
    layer = torch.nn.Linear(width_in, width_out, device="meta")
    layer.weight = torch.nn.Parameter(case.randn(width_out, width_in, scale=scale), requires_grad=False)
    layer.bias = torch.nn.Parameter(case.randn(width_out, scale=0.3), requires_grad=False)
    return layer


def expert(case):
    # SiLU of a unit normal has a second moment of 0.36: this gives the expert's output a unit scale.
    return (
        linear(case, case.n, INNER, case.n**-0.5),
        linear(case, case.n, INNER, case.n**-0.5),
        linear(case, INNER, case.n, (0.36 * INNER) ** -0.5),
    )


def router_bias(case, experts):
    """By turns: even routing, an expert that nobody wants, one that everybody wants, no bias at all."""
    bias = case.randn(experts, scale=0.2)
    chosen = case.shared.integer(0, experts)
    match case.trial:
        case 1:
            bias[chosen] = -20.0
        case 2:
            bias[chosen] = 2.0
        case 3:
            return None
    return bias


def decided_tokens(case, gate_weight, gate_bias, top_k):
    """Tokens whose last chosen expert is clearly ahead of the first rejected one, whatever the rounding."""
    tokens = case.randn(case.m, case.n)
    if top_k == gate_weight.shape[0]:
        return tokens
    wide_bias = None if gate_bias is None else gate_bias.to(torch.float32)
    while True:
        logits = F.linear(tokens.to(torch.float32), gate_weight.to(torch.float32), wide_bias)
        ranked = logits.topk(top_k + 1, dim=-1).values
        undecided = ranked[:, -2] - ranked[:, -1] < LOGIT_MARGIN
        if not undecided.any():
            return tokens
        tokens[undecided] = case.randn(int(undecided.sum()), case.n)


def inputs(case):
    experts, top_k = layout(case)
    gate_weight = case.randn(experts, case.n, scale=ROUTER_SCALE * case.n**-0.5)
    gate_bias = router_bias(case, experts)
    tokens = decided_tokens(case, gate_weight, gate_bias, top_k)
    if case.trial == 4:
        tokens = tokens.unsqueeze(0)
    return tokens, gate_weight, gate_bias, *expert(case), experts, top_k, None


def cost(case):
    rows, width, s = case.m, case.n, case.itemsize
    experts, top_k = layout(case)
    expert_size = 3 * width * INNER
    # Even routing. An expert may also travel to its tokens, which for many tokens is far less than the
    # reference sends.
    per_peer = min(2 * top_k * rows / experts * width, expert_size) * s
    return Cost(
        flops=6 * top_k * rows * width * INNER + 2 * rows * width * experts,
        hbm=(2 * rows * width + expert_size + experts * width) * s,
        link=Link(egress=(experts - 1) * per_peer, ingress=(experts - 1) * per_peer),
    )


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
