"""Expert-parallel MoE layer whose three expert projections carry LoRA adapters.

Expert e lives on rank e // (num_experts / W). All experts of a rank share that rank's projections and
adapters, so ranks have different weights. Adapters are added with factor 1. The top-k softmax weights are not
renormalised. The result is [tokens, hidden] whatever leading dims the input has. A rank may receive no row.
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.cost import Link


def adapted(x: torch.Tensor, projection: torch.nn.Linear, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return projection(x) + F.linear(F.linear(x, A), B)


def route(
    tokens: torch.Tensor, gate_weight: torch.Tensor, gate_bias: torch.Tensor | None, top_k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and experts of every token, both [tokens, top_k]."""
    return F.linear(tokens, gate_weight, gate_bias).softmax(dim=-1).topk(top_k, dim=-1)


def exchange(rows: torch.Tensor, sent: list[int], arriving: list[int], group: dist.ProcessGroup | None) -> torch.Tensor:
    received = rows.new_empty(sum(arriving), rows.shape[1])
    dist.all_to_all_single(received, rows, arriving, sent, group=group)
    return received


@torch.no_grad()
def solution(
    hidden_states: torch.Tensor,
    gate_weight: torch.Tensor,
    gate_bias: torch.Tensor | None,
    gate_proj: torch.nn.Linear,
    up_proj: torch.nn.Linear,
    down_proj: torch.nn.Linear,
    lora_gate_A: torch.Tensor,
    lora_gate_B: torch.Tensor,
    lora_up_A: torch.Tensor,
    lora_up_B: torch.Tensor,
    lora_down_A: torch.Tensor,
    lora_down_B: torch.Tensor,
    num_experts: int,
    top_k: int,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    tokens = hidden_states.reshape(-1, hidden_states.shape[-1])
    weights, experts = route(tokens, gate_weight, gate_bias, top_k)

    # One row per choice, in the order of experts and thereby of the ranks that own them.
    choices = experts.flatten().argsort(stable=True)
    token_of = choices // top_k
    sent = torch.bincount(experts.flatten() // (num_experts // world), minlength=world)
    arriving = torch.empty_like(sent)
    dist.all_to_all_single(arriving, sent, group=group)
    sent_list, arriving_list = sent.tolist(), arriving.tolist()

    rows = exchange(tokens[token_of], sent_list, arriving_list, group)
    gate = adapted(rows, gate_proj, lora_gate_A, lora_gate_B)
    up = adapted(rows, up_proj, lora_up_A, lora_up_B)
    served = adapted(F.silu(gate) * up, down_proj, lora_down_A, lora_down_B)
    returned = exchange(served, arriving_list, sent_list, group)

    terms = returned * weights.flatten()[choices].unsqueeze(1)
    return torch.zeros_like(tokens).index_add_(0, token_of, terms)


PROBLEM = Problem(
    category="Expert Parallel",
    source="expert-parallel MoE forward with LoRA on the expert projections (VeOmni, xorl)",
    sizes={"tiny": Size(24, 32), "paper": Size(1024, 1024), "large": Size(16384, 7168)},
    requires={"the 8 experts are spread evenly over the ranks": lambda case: EXPERTS % case.world == 0},
)

EXPERTS, TOP_K, WIDTH, LORA_RANK = 8, 2, 128, 8


def router_bias(case):
    """None by turns, or uneven; and once so low for one rank's experts that no token goes there."""
    if case.trial % 5 == 1:
        return None
    bias = case.shared.randn(EXPERTS, scale=0.25)
    if case.trial % 5 == 3 and case.world > 1:
        bias.view(case.world, -1)[case.shared.integer(0, case.world)] -= 6
    return bias


def decided_tokens(case, gate_weight, gate_bias):
    """Of twice as many tokens those whose last chosen expert is furthest ahead: no rounding swaps experts.

    Tokens are normed as before any MoE layer, so that no row is so large that its rounding hides errors elsewhere.
    """
    drawn = F.rms_norm(case.randn(2 * case.m, case.n, dtype=torch.float32), (case.n,)).to(case.dtype)
    logits = drawn.float() @ gate_weight.float().T
    if gate_bias is not None:
        logits += gate_bias
    best = logits.topk(TOP_K + 1).values
    margin = best[:, TOP_K - 1] - best[:, TOP_K]
    return drawn[margin.argsort(descending=True, stable=True)[: case.m]]


def linear(case, fan_in, fan_out, scale):
    layer = torch.nn.utils.skip_init(torch.nn.Linear, fan_in, fan_out, device=case.device, dtype=case.dtype)
    layer.weight.data.copy_(case.randn(fan_out, fan_in, scale=scale))
    layer.bias.data.copy_(case.randn(fan_out, scale=0.3))
    return layer


def adapter(case, fan_in, fan_out, scale):
    """Half as strong as the projection beside it."""
    return case.randn(LORA_RANK, fan_in, scale=0.5 * scale), case.randn(fan_out, LORA_RANK, scale=LORA_RANK**-0.5)


def inputs(case):
    gate_weight = case.shared.randn(EXPERTS, case.n, scale=0.5 * case.n**-0.5)
    gate_bias = router_bias(case)
    hidden = decided_tokens(case, gate_weight, gate_bias)
    # The SwiGLU has a second moment near 0.7, and a token's two weights are near 0.2: outputs of order 1.
    shapes = [(case.n, WIDTH, case.n**-0.5)] * 2 + [(WIDTH, case.n, 3 * (0.7 * WIDTH) ** -0.5)]
    return (
        hidden.unsqueeze(0) if case.trial % 5 == 2 else hidden,
        gate_weight,
        gate_bias,
        *(linear(case, *shape) for shape in shapes),
        *(matrix for shape in shapes for matrix in adapter(case, *shape)),
        EXPERTS,
        TOP_K,
        None,
    )


def cost(case):
    m, n, s = case.m, case.n, case.itemsize
    # A token needs one row on each rank that has any of its experts, and gets one partial sum back from it.
    # The share of tokens that need a certain rank is that of uniform routing.
    share = 1 - math.comb(EXPERTS - EXPERTS // case.world, TOP_K) / math.comb(EXPERTS, TOP_K)
    rows = case.world * share * m
    crossing = 2 * (case.world - 1) * share * m * n * s
    adapters = 3 * LORA_RANK * (n + WIDTH)
    return Cost(
        flops=2 * m * n * EXPERTS + rows * (6 * n * WIDTH + 2 * adapters),
        hbm=(2 * m * n + EXPERTS * n + 3 * n * WIDTH + adapters) * s,
        link=Link(egress=crossing, ingress=crossing),
    )


def second_expert_ignored(*args):
    return solution(*args[:13], 1, None)


def down_adapter_ignored(*args):
    return solution(*args[:11], torch.zeros_like(args[11]), *args[12:])


def gate_adapter_divided_by_its_rank(*args):
    return solution(*args[:7], args[7] / args[7].shape[1], *args[8:])


@torch.no_grad()
def own_experts_only(hidden, gate_weight, gate_bias, gate, up, down, A1, B1, A2, B2, A3, B3, *_):
    tokens = hidden.flatten(0, -2)
    weights, _ = route(tokens, gate_weight, gate_bias, TOP_K)
    inner = F.silu(adapted(tokens, gate, A1, B1)) * adapted(tokens, up, A2, B2)
    return adapted(inner, down, A3, B3) * weights.sum(dim=-1, keepdim=True)


MUTANTS = {
    "second_expert_ignored": second_expert_ignored,
    "down_adapter_ignored": down_adapter_ignored,
    "gate_adapter_divided_by_its_rank": gate_adapter_divided_by_its_rank,
    "own_experts_only": own_experts_only,
}
