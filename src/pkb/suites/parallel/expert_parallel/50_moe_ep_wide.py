"""Mixture-of-experts layer with two experts per rank: tokens travel to their two experts and back.

Every rank routes its own tokens with its own router. The weights are the softmax's probabilities as they are, not
renormalised over the chosen experts. Rank r owns experts 2r and 2r + 1, and both are the same function,
down(silu(gate(x)) * up(x)) with that rank's linear layers, biases included: only the router tells them apart, and
a solution may make use of that. Leading dims of `hidden_states` are flattened; the result has two dims.
"""

import math

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
)

INNER = 128
TOP_K = 2
LOCAL_EXPERTS = 2
ROUTER_SCALE = 0.6
LOGIT_MARGIN = 0.06


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


def decided_tokens(case, gate_weight, gate_bias):
    """Tokens whose last chosen expert is clearly ahead of the first rejected one, whatever the rounding."""
    tokens = case.randn(case.m, case.n)
    if gate_weight.shape[0] == TOP_K:
        return tokens
    wide_bias = None if gate_bias is None else gate_bias.to(torch.float32)
    while True:
        logits = F.linear(tokens.to(torch.float32), gate_weight.to(torch.float32), wide_bias)
        ranked = logits.topk(TOP_K + 1, dim=-1).values
        undecided = ranked[:, -2] - ranked[:, -1] < LOGIT_MARGIN
        if not undecided.any():
            return tokens
        tokens[undecided] = case.randn(int(undecided.sum()), case.n)


def inputs(case):
    experts = LOCAL_EXPERTS * case.world
    gate_weight = case.randn(experts, case.n, scale=ROUTER_SCALE * case.n**-0.5)
    gate_bias = router_bias(case, experts)
    tokens = decided_tokens(case, gate_weight, gate_bias)
    if case.trial == 4:
        tokens = tokens.unsqueeze(0)
    return tokens, gate_weight, gate_bias, *expert(case), experts, TOP_K, None


def cost(case):
    rows, width, world, s = case.m, case.n, case.world, case.itemsize
    experts = LOCAL_EXPERTS * world
    # Even routing. A token whose two experts share a rank goes there once.
    per_rank = rows * (1 - math.comb(experts - LOCAL_EXPERTS, TOP_K) / math.comb(experts, TOP_K))
    expert_size = 3 * width * INNER
    # An expert may also travel to its tokens, which for many tokens is far less than the reference sends.
    per_peer = min(2 * per_rank * width, expert_size) * s
    return Cost(
        flops=6 * world * per_rank * width * INNER + 2 * rows * width * experts,
        hbm=(2 * rows * width + expert_size + experts * width) * s,
        link=Link(egress=(world - 1) * per_peer, ingress=(world - 1) * per_peer),
    )


def second_expert_ignored(*args):
    *most, top_k, group = args
    return solution(*most, top_k - 1, group)


def second_weight_lost_on_a_shared_rank(hidden_states, gate_weight, gate_bias, *rest):
    weights, experts = route(hidden_states.flatten(0, -2), gate_weight, gate_bias, TOP_K)
    owners = experts // LOCAL_EXPERTS
    lost = torch.where(owners[:, 0] == owners[:, 1], weights[:, 1] / weights.sum(dim=-1), 0.0)
    return solution(hidden_states, gate_weight, gate_bias, *rest) * (1 - lost).to(weights.dtype).unsqueeze(1)


def experts_dealt_out_in_turn(hidden_states, gate_weight, gate_bias, *rest):
    dealt = torch.arange(gate_weight.shape[0], device=gate_weight.device).view(LOCAL_EXPERTS, -1).T.flatten()
    bias = None if gate_bias is None else gate_bias[dealt]
    return solution(hidden_states, gate_weight[dealt], bias, *rest)


def own_expert_for_all(hidden_states, gate_weight, gate_bias, gate_proj, up_proj, down_proj, experts, top_k, group):
    x = hidden_states.flatten(0, -2)
    weights, _ = route(x, gate_weight, gate_bias, top_k)
    return down_proj(F.silu(gate_proj(x)) * up_proj(x)) * weights.sum(dim=-1, keepdim=True)


MUTANTS = {
    "second_expert_ignored": second_expert_ignored,
    "second_weight_lost_on_a_shared_rank": second_weight_lost_on_a_shared_rank,
    "experts_dealt_out_in_turn": experts_dealt_out_in_turn,
    "own_expert_for_all": own_expert_for_all,
}
