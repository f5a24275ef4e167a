"""Auxiliary load-balancing loss of a mixture-of-experts router, averaged over the ranks.

On each rank: num_experts x the sum over choices k and experts e of (share of tokens whose k-th choice is e) x (mean
probability of e), not divided by top_k. The result is the plain mean of the ranks' losses. Logits of several layers
come as a tuple or list and are stacked. `attention_mask` [batch, sequence] weighs the tokens of every layer alike. The
softmax and its mean are in the dtype of the logits, the rest in float32.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link


def mean_over_tokens(values: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    if weight is None:
        return values.mean(dim=0)
    weights = weight.reshape(-1, *[1] * (values.dim() - 1)).expand_as(values)
    # The sum of the weights is rounded to the dtype of the values, as where this loss comes from.
    return (values * weights).sum(dim=0) / weights.sum(dim=0)


def routing_means(
    gate_logits: torch.Tensor | tuple[torch.Tensor, ...] | list[torch.Tensor],
    num_experts: int,
    top_k: int,
    attention_mask: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Share of tokens by choice and expert, [top_k, num_experts], and mean probability by expert."""
    logits = gate_logits if isinstance(gate_logits, torch.Tensor) else torch.cat(list(gate_logits))
    probabilities = F.softmax(logits, dim=-1)
    choices = F.one_hot(probabilities.topk(top_k, dim=-1).indices, num_experts).to(torch.float32)
    weight = None
    if attention_mask is not None:
        weight = attention_mask.reshape(-1).repeat(logits.shape[0] // attention_mask.numel())
    return mean_over_tokens(choices, weight), mean_over_tokens(probabilities, weight)


def solution(
    gate_logits: torch.Tensor | tuple[torch.Tensor, ...] | list[torch.Tensor],
    num_experts: int,
    top_k: int = 2,
    attention_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    shares, means = routing_means(gate_logits, num_experts, top_k, attention_mask)
    loss = num_experts * (shares * means).sum()
    if dist.is_initialized():
        dist.all_reduce(loss)
        loss = loss / dist.get_world_size()
    return loss


PROBLEM = Problem(
    category="Expert Parallel",
    source="auxiliary loss of Switch Transformer in the Mixtral form (Hugging Face, VeOmni)",
    sizes={"tiny": Size(512, 1), "paper": Size(1024, 1024), "large": Size(32768, 1)},
    deviations={
        "values": (
            "ranks and layers prefer experts of their own, and no two logits are so near that rounding could swap "
            "experts"
        ),
        "variants": (
            "in later trials there are two layers in `gate_logits`, and an `attention_mask` of integers, bools or "
            "floats that removes late tokens, which prefer no expert; the published mask is always None"
        ),
    },
)

EXPERTS, TOP_K = 8, 2
LAYERS_TRIAL, INT_MASK_TRIAL, LAYERS_MASK_TRIAL, FLOAT_MASK_TRIAL = 1, 2, 3, 4
GAP = 0.125


def inputs(case):
    layers = tuple(layer_logits(case) for _ in range(layer_count(case)))
    return layers if len(layers) > 1 else layers[0], EXPERTS, TOP_K, mask(case)


def layer_count(case):
    return 2 if case.trial in (LAYERS_TRIAL, LAYERS_MASK_TRIAL) else 1


def late_half(case):
    return torch.arange(case.m, device=case.device) >= case.m // 2


def layer_logits(case):
    """Every rank and layer prefers experts of its own, none so near the next that rounding could swap them."""
    preference = case.randn(1, EXPERTS, scale=2.0, dtype=torch.float32) * ~late_half(case).unsqueeze(1)
    logits = case.randn(case.m, EXPERTS, dtype=torch.float32) + preference
    descending, order = logits.sort(dim=-1, descending=True)
    spaced = descending - GAP * torch.arange(EXPERTS, device=case.device)
    return torch.empty_like(logits).scatter_(-1, order, spaced).to(case.dtype)


def mask(case):
    """Masks mostly late tokens. These prefer no expert, so that leaving them in lowers the loss."""
    batch = 4 if case.m % 4 == 0 else 1
    kept = torch.where(late_half(case), 0.3, 0.9)
    # The first token is always present: a mask of zeros has no mean.
    kept[0] = 1.0
    present = (case.rand(case.m, dtype=torch.float32) < kept).reshape(batch, -1)
    if case.trial == FLOAT_MASK_TRIAL:
        return present * case.rand(*present.shape, low=0.25, high=2.0, dtype=torch.float32)
    if case.trial == INT_MASK_TRIAL:
        return present.to(torch.int64)
    return present if case.trial == LAYERS_MASK_TRIAL else None


def cost(case):
    elements = layer_count(case) * case.m * EXPERTS
    return Cost(
        # Exponential, sum, division, comparison and mean of each probability. The reference also averages the
        # choices as rows of ones and zeros, where counting them is enough.
        flops=5 * elements,
        hbm=elements * case.itemsize,
        link=link.all_reduce(4, case.world),
    )


def divided_by_top_k(gate_logits, num_experts, top_k=2, attention_mask=None):
    return solution(gate_logits, num_experts, top_k, attention_mask) / top_k


def first_choice_only(gate_logits, num_experts, top_k=2, attention_mask=None):
    return solution(gate_logits, num_experts, 1, attention_mask)


def mask_ignored(gate_logits, num_experts, top_k=2, attention_mask=None):
    return solution(gate_logits, num_experts, top_k)


def product_of_global_means(gate_logits, num_experts, top_k=2, attention_mask=None):
    means = routing_means(gate_logits, num_experts, top_k, attention_mask)
    shares, means = (x.to(torch.float32) / dist.get_world_size() for x in means)
    dist.all_reduce(shares)
    dist.all_reduce(means)
    return num_experts * (shares * means).sum()


MUTANTS = {
    "divided_by_top_k": divided_by_top_k,
    "first_choice_only": first_choice_only,
    "mask_ignored": mask_ignored,
    "product_of_global_means": product_of_global_means,
}
