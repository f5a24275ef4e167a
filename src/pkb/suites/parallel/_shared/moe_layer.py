"""Inputs and costs of whole mixture-of-experts layers in which every rank has a router and an expert of its own."""

# torch is imported on use: `pkb list` computes costs without it.
from pkb import Cost
from pkb.problems.cost import Link

INNER = 128
ROUTER_SCALE = 0.6
LOGIT_MARGIN = 0.06


def layer_inputs(case, experts, top_k):
    """Draw the arguments of the layer, in WORLD."""
    gate_weight = case.randn(experts, case.n, scale=ROUTER_SCALE * case.n**-0.5)
    gate_bias = router_bias(case, experts)
    tokens = draw_decided_tokens(case, gate_weight, gate_bias, top_k)
    if case.trial == 4:
        tokens = tokens.unsqueeze(0)
    return tokens, gate_weight, gate_bias, *expert(case), experts, top_k, None


def router_bias(case, experts):
    """Draw a bias for, by trial, even routing, an expert without tokens, one with most tokens, or no bias."""
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


def draw_decided_tokens(case, gate_weight, gate_bias, top_k):
    """Draw tokens whose last chosen expert is clearly ahead of the first rejected one, whatever the rounding."""
    import torch
    import torch.nn.functional as F

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


def expert(case):
    # SiLU of a unit normal has a second moment of 0.36: this gives the expert's output a unit scale.
    return (
        linear(case, case.n, INNER, case.n**-0.5),
        linear(case, case.n, INNER, case.n**-0.5),
        linear(case, INNER, case.n, (0.36 * INNER) ** -0.5),
    )


def linear(case, width_in, width_out, scale):
    import torch

    layer = torch.nn.Linear(width_in, width_out, device="meta")
    layer.weight = torch.nn.Parameter(case.randn(width_out, width_in, scale=scale), requires_grad=False)
    layer.bias = torch.nn.Parameter(case.randn(width_out, scale=0.3), requires_grad=False)
    return layer


def layer_cost(case, experts, ranks, visits):
    """Return the cost with even routing over `ranks` ranks, where a rank's experts have to see `visits` rows in all."""
    rows, width, s = case.m, case.n, case.itemsize
    expert_size = 3 * width * INNER
    # An expert may also travel to its tokens.
    per_peer = min(2 * visits / ranks * width, expert_size) * s
    return Cost(
        flops=6 * visits * width * INNER + 2 * rows * width * experts,
        hbm=(2 * rows * width + expert_size + experts * width) * s,
        link=Link(egress=(ranks - 1) * per_peer, ingress=(ranks - 1) * per_peer),
    )
