"""Expert-parallel MoE layer whose three expert projections carry LoRA adapters.

Expert e lives on rank e // (num_experts / W). All experts of a rank share that rank's projections and
adapters, so ranks have different weights. Adapters are added with factor 1. The top-k softmax weights are not
renormalised. The result is [tokens, hidden] whatever leading dims the input has. A rank may receive no row.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.suites.parallel._shared.fused_moe import EXPERTS, TOP_K, WIDTH, draw_routed_tokens, linear, rows_and_traffic


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
    deviations={
        "values": (
            "all ranks have one router; the router has small weights, and tokens that rounding could send to another "
            "expert are not drawn; with the published normal weights a token's second expert counts for almost "
            "nothing; tokens are normed, and adapters are half as strong as the projections beside them"
        ),
        "variants": (
            "in later trials `gate_bias` is None, `hidden_states` has three dims, and no token goes to one rank's "
            "experts"
        ),
    },
)

LORA_RANK = 8


def adapter(case, fan_in, fan_out, scale):
    """Half as strong as the projection beside it."""
    return case.randn(LORA_RANK, fan_in, scale=0.5 * scale), case.randn(fan_out, LORA_RANK, scale=LORA_RANK**-0.5)


def inputs(case):
    # The SwiGLU has a second moment near 0.7, and a token's two weights are near 0.2: outputs of order 1.
    shapes = [(case.n, WIDTH, case.n**-0.5)] * 2 + [(WIDTH, case.n, 3 * (0.7 * WIDTH) ** -0.5)]
    return (
        *draw_routed_tokens(case),
        *(linear(case, *shape) for shape in shapes),
        *(matrix for shape in shapes for matrix in adapter(case, *shape)),
        EXPERTS,
        TOP_K,
        None,
    )


def cost(case):
    m, n, s = case.m, case.n, case.itemsize
    rows, traffic = rows_and_traffic(case)
    adapters = 3 * LORA_RANK * (n + WIDTH)
    return Cost(
        flops=2 * m * n * EXPERTS + rows * (6 * n * WIDTH + 2 * adapters),
        hbm=(2 * m * n + EXPERTS * n + 3 * n * WIDTH + adapters) * s,
        link=traffic,
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
