"""Expert-parallel MoE layer: route each token to its top-k experts, dispatch, SwiGLU, weighted combine.

Expert e lives on rank e // (num_experts / W). All experts of a rank share that rank's three projections, so
ranks have different weights. The top-k softmax weights are not renormalised. The result is [tokens, hidden]
whatever leading dims the input has. A rank may receive no row at all.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.suites.parallel._shared.fused_moe import EXPERTS, TOP_K, WIDTH, draw_routed_tokens, linear, rows_and_traffic


def mlp(
    x: torch.Tensor, gate_proj: torch.nn.Linear, up_proj: torch.nn.Linear, down_proj: torch.nn.Linear
) -> torch.Tensor:
    return down_proj(F.silu(gate_proj(x)) * up_proj(x))


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
    served = mlp(rows, gate_proj, up_proj, down_proj)
    returned = exchange(served, arriving_list, sent_list, group)

    terms = returned * weights.flatten()[choices].unsqueeze(1)
    return torch.zeros_like(tokens).index_add_(0, token_of, terms)


PROBLEM = Problem(
    category="Expert Parallel",
    source="expert-parallel MoE forward (VeOmni; the same shape in Megatron-LM and DeepSpeed-MoE)",
    sizes={"tiny": Size(24, 32), "paper": Size(1024, 1024), "large": Size(16384, 7168)},
    requires={"the 8 experts are spread evenly over the ranks": lambda case: EXPERTS % case.world == 0},
    deviations={
        "values": (
            "all ranks have one router; the router has small weights, and tokens that rounding could send to another "
            "expert are not drawn; with the published normal weights a token's second expert counts for almost "
            "nothing; tokens are normed, and projections give outputs of order 1"
        ),
        "variants": (
            "in later trials `gate_bias` is None, `hidden_states` has three dims, and no token goes to one rank's "
            "experts"
        ),
    },
)


def inputs(case):
    return (
        *draw_routed_tokens(case),
        linear(case, case.n, WIDTH, case.n**-0.5),
        linear(case, case.n, WIDTH, case.n**-0.5),
        # The SwiGLU has a second moment near 0.5, and a token's two weights are near 0.2: outputs of order 1.
        linear(case, WIDTH, case.n, 3 * (0.5 * WIDTH) ** -0.5),
        EXPERTS,
        TOP_K,
        None,
    )


def cost(case):
    m, n, s = case.m, case.n, case.itemsize
    rows, traffic = rows_and_traffic(case)
    return Cost(
        flops=2 * m * n * EXPERTS + 6 * rows * n * WIDTH,
        hbm=(2 * m * n + EXPERTS * n + 3 * n * WIDTH) * s,
        link=traffic,
    )


def second_expert_ignored(*args):
    return solution(*args[:7], 1, None)


@torch.no_grad()
def weights_renormalised(hidden, gate_weight, gate_bias, *rest):
    weights, _ = route(hidden.flatten(0, -2), gate_weight, gate_bias, TOP_K)
    return solution(hidden, gate_weight, gate_bias, *rest) / weights.sum(dim=-1, keepdim=True)


@torch.no_grad()
def own_experts_only(hidden, gate_weight, gate_bias, gate_proj, up_proj, down_proj, *_):
    tokens = hidden.flatten(0, -2)
    weights, _ = route(tokens, gate_weight, gate_bias, TOP_K)
    return mlp(tokens, gate_proj, up_proj, down_proj) * weights.sum(dim=-1, keepdim=True)


MUTANTS = {
    "second_expert_ignored": second_expert_ignored,
    "weights_renormalised": weights_renormalised,
    "own_experts_only": own_experts_only,
}
