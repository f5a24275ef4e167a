"""Gradient clipping by the global p-norm of gradients that are sharded over the ranks.

Returns the norm before clipping, in float32. Where it exceeds `max_norm`, every gradient is multiplied by
max_norm / norm in place, in its own dtype; otherwise none is touched. Entries of the list may be None. `norm_type` is
finite and positive. Without a group the norm is that of the rank's own gradients.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def power_sum(grads: list[torch.Tensor], p: float) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float32, device=grads[0].device if grads else None)
    for grad in grads:
        total += grad.to(torch.float32).abs().pow(p).sum()
    return total


def solution(
    grad_tensors: list[torch.Tensor | None],
    max_norm: float,
    norm_type: float = 2.0,
    fsdp_group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    grads = [grad for grad in grad_tensors if grad is not None]
    powers = power_sum(grads, norm_type)
    if fsdp_group is not None:
        dist.all_reduce(powers, group=fsdp_group)
    norm = powers.pow(1 / norm_type)
    if norm > max_norm:
        for grad in grads:
            grad.mul_(max_norm / norm)
    return norm


PROBLEM = Problem(
    category="FSDP / ZeRO",
    source="gradient clipping under FSDP2 (VeOmni)",
    sizes={"tiny": Size(16, 24), "paper": Size(1024, 1024), "large": Size(16384, 16384)},
    mutates=("grad_tensors",),
    deviations={
        "values": "each tensor has a scale of its own, between 0.1 and 10",
        "scalars": (
            "`max_norm` is far below the norm, and in one trial far above it (published: 1.0, so that gradients are "
            "always clipped to almost nothing); `norm_type` is 3 in one trial"
        ),
        "variants": (
            "in one trial a rank has None among `grad_tensors`, in one `fsdp_group` is None and nothing is summed"
        ),
        "result": "the gradients in `grad_tensors` are compared as well as the norm: the function scales them in place",
    },
)

TENSORS = 3
SMALL_TRIAL, NONE_TRIAL, CUBIC_TRIAL, LOCAL_TRIAL = 1, 2, 3, 4


def inputs(case):
    p = 3.0 if case.trial == CUBIC_TRIAL else 2.0
    # No tensor is a stand-in for another: each has a scale of its own between 0.1 and 10.
    scales = (10.0 ** case.rand(TENSORS, low=-1, high=1, dtype=torch.float32)).tolist()
    grads = [case.randn(case.m, case.n, scale=scale) for scale in scales]
    if case.trial == NONE_TRIAL:
        grads[case.rank % TENSORS] = None
    # Far outside the range of norms that these scales allow, on either side.
    group, ranks = (None, 1) if case.trial == LOCAL_TRIAL else (dist.group.WORLD, case.world)
    typical = (TENSORS * case.m * case.n * ranks) ** (1 / p)
    return grads, typical * (20 if case.trial == SMALL_TRIAL else 0.05), p, group


def cost(case):
    tensors = TENSORS - (case.trial == NONE_TRIAL)
    clips = case.trial != SMALL_TRIAL
    elements = tensors * case.m * case.n
    return Cost(
        flops=(2 + clips) * elements,
        hbm=(1 + clips) * elements * case.itemsize,
        link=link.none() if case.trial == LOCAL_TRIAL else link.all_reduce(4, case.world),
    )


def gradients_not_scaled(grad_tensors, *rest):
    return solution([grad if grad is None else grad.clone() for grad in grad_tensors], *rest)


def own_norm_extrapolated(grad_tensors, max_norm, norm_type=2.0, fsdp_group=None):
    ranks = 1 if fsdp_group is None else dist.get_world_size(fsdp_group)
    factor = ranks ** (1 / norm_type)
    return solution(grad_tensors, max_norm / factor, norm_type) * factor


def scaled_below_the_limit_too(grad_tensors, max_norm, norm_type=2.0, fsdp_group=None):
    norm = solution(grad_tensors, max_norm, norm_type, fsdp_group)
    for grad in grad_tensors:
        if grad is not None and norm <= max_norm:
            grad.mul_(max_norm / norm)
    return norm


def reduced_without_a_group(grad_tensors, max_norm, norm_type=2.0, fsdp_group=None):
    return solution(grad_tensors, max_norm, norm_type, dist.group.WORLD)


MUTANTS = {
    "gradients_not_scaled": gradients_not_scaled,
    "own_norm_extrapolated": own_norm_extrapolated,
    "scaled_below_the_limit_too": scaled_below_the_limit_too,
    "reduced_without_a_group": reduced_without_a_group,
}
