"""Inputs and costs of the fused mixture-of-experts layers, whose router is the same on all ranks."""

# torch is imported on use: `pkb list` computes costs without it.
import math

from pkb.problems.cost import Link

EXPERTS, TOP_K, WIDTH = 8, 2, 128


def draw_routed_tokens(case):
    """Draw hidden states, the router's weight, and its bias."""
    gate_weight = case.shared.randn(EXPERTS, case.n, scale=0.5 * case.n**-0.5)
    gate_bias = router_bias(case)
    hidden = draw_decided_tokens(case, gate_weight, gate_bias)
    return hidden.unsqueeze(0) if case.trial % 5 == 2 else hidden, gate_weight, gate_bias


def router_bias(case):
    """Draw an uneven bias; in some trials None, or so low for one rank's experts that no token goes there."""
    if case.trial % 5 == 1:
        return None
    bias = case.shared.randn(EXPERTS, scale=0.25)
    if case.trial % 5 == 3 and case.world > 1:
        bias.view(case.world, -1)[case.shared.integer(0, case.world)] -= 6
    return bias


def draw_decided_tokens(case, gate_weight, gate_bias):
    """Draw twice the tokens, and keep those whose last chosen expert is furthest ahead: no rounding swaps experts.

    Tokens are normed as before any MoE layer, so that no row is so large that its rounding hides errors elsewhere.
    """
    import torch
    import torch.nn.functional as F

    drawn = F.rms_norm(case.randn(2 * case.m, case.n, dtype=torch.float32), (case.n,)).to(case.dtype)
    logits = drawn.float() @ gate_weight.float().T
    if gate_bias is not None:
        logits += gate_bias
    best = logits.topk(TOP_K + 1).values
    margin = best[:, TOP_K - 1] - best[:, TOP_K]
    return drawn[margin.argsort(descending=True, stable=True)[: case.m]]


def linear(case, fan_in, fan_out, scale):
    import torch

    # Not skip_init, which imports torch's symbolic shapes on every rank, at every judgement.
    layer = torch.nn.Linear(fan_in, fan_out, device=case.device, dtype=case.dtype)
    layer.weight.data.copy_(case.randn(fan_out, fan_in, scale=scale))
    layer.bias.data.copy_(case.randn(fan_out, scale=0.3))
    return layer


def rows_and_traffic(case):
    """Return the number of rows that a rank's experts process, and the bytes between ranks."""
    # A token needs one row on each rank that has any of its experts, and gets one partial sum back from it.
    # The share of tokens that need a certain rank is that of uniform routing.
    share = 1 - math.comb(EXPERTS - EXPERTS // case.world, TOP_K) / math.comb(EXPERTS, TOP_K)
    crossing = 2 * (case.world - 1) * share * case.m * case.n * case.itemsize
    return case.world * share * case.m, Link(egress=crossing, ingress=crossing)
