"""Gradient clipping by the global p-norm where expert gradients are sharded over other groups than the rest.

Expert gradients are first multiplied by 1 / ep_size in place, whether or not clipping follows. Their part of the norm
is summed over `ep_fsdp_group`, then over `ep_group`; the part of the others over `fsdp_group`. A group that is None
leaves out its sum. Returns the norm before clipping, in float32. Where it exceeds `max_norm`, every gradient of both
lists is multiplied by max_norm / norm in place, in its own dtype. Entries may be None, and lists empty.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def power_sum(
    grads: list[torch.Tensor], p: float, device: torch.device | None, groups: list[dist.ProcessGroup | None]
) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float32, device=device)
    for grad in grads:
        total += grad.to(torch.float32).abs().pow(p).sum()
    for group in groups:
        if group is not None:
            dist.all_reduce(total, group=group)
    return total


def scale(grads: list[torch.Tensor], factor: float | torch.Tensor) -> None:
    for grad in grads:
        grad.mul_(factor)


def solution(
    non_ep_grad_tensors: list[torch.Tensor | None],
    ep_grad_tensors: list[torch.Tensor | None],
    max_norm: float,
    norm_type: float = 2.0,
    ep_size: int = 1,
    fsdp_group: dist.ProcessGroup | None = None,
    ep_fsdp_group: dist.ProcessGroup | None = None,
    ep_group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    shared = [grad for grad in non_ep_grad_tensors if grad is not None]
    expert = [grad for grad in ep_grad_tensors if grad is not None]
    device = next((grad.device for grad in shared + expert), None)
    if ep_size > 1:
        scale(expert, 1 / ep_size)

    powers = power_sum(shared, norm_type, device, [fsdp_group])
    powers = powers + power_sum(expert, norm_type, device, [ep_fsdp_group, ep_group])
    norm = powers.pow(1 / norm_type)
    if norm > max_norm:
        scale(shared + expert, max_norm / norm)
    return norm


PROBLEM = Problem(
    category="FSDP / ZeRO",
    source="gradient clipping under FSDP2 with expert parallelism (VeOmni)",
    sizes={"tiny": Size(16, 24), "paper": Size(1024, 1024), "large": Size(16384, 16384)},
    mutates=("non_ep_grad_tensors", "ep_grad_tensors"),
    deviations={
        "values": "the two lists have scales of their own, between 0.1 and 10",
        "scalars": (
            "`max_norm` is far below the norm, and in one trial far above it (published: 1.0); `norm_type` is 3 in "
            "one trial"
        ),
        "variants": (
            "in one trial `non_ep_grad_tensors` or `ep_grad_tensors` is empty or has None, in one all groups are None"
        ),
        "result": "the gradients in both lists are compared as well as the norm: the function scales them in place",
    },
)

SMALL_TRIAL, NONE_TRIAL, CUBIC_TRIAL, LOCAL_TRIAL = 1, 2, 3, 4


def inputs(case):
    p = 3.0 if case.trial == CUBIC_TRIAL else 2.0
    ep_size = max(1, case.world // 2)
    # No tensor is a stand-in for another: each has a scale of its own between 0.1 and 10. The expert's
    # keeps that range after the division.
    shared_scale, expert_scale = (10.0 ** case.rand(2, low=-1, high=1, dtype=torch.float32)).tolist()
    shared = [case.randn(case.m, case.n, scale=shared_scale)]
    expert = [case.randn(case.m, case.n, scale=expert_scale * ep_size)]
    if case.trial == NONE_TRIAL:
        shared, expert = ([None, *shared], [None]) if case.rank % 2 == 0 else ([], [*expert, None])
    # Far outside the range of norms that these scales allow, on either side.
    typical = (2 * case.m * case.n * case.world) ** (1 / p)
    max_norm = typical * (20 if case.trial == SMALL_TRIAL else 0.05)
    return shared, expert, max_norm, p, ep_size, dist.group.WORLD, *expert_groups(case, ep_size)


def expert_groups(case, ep_size):
    """The groups over which this rank's expert gradients are sharded (FSDP) and spread (EP)."""
    if case.trial == LOCAL_TRIAL:
        return None, None
    if ep_size == 1 or case.world % ep_size:
        return dist.group.WORLD, None
    starts = range(0, case.world, ep_size)
    same_experts = [[start + expert for start in starts] for expert in range(ep_size)]
    all_experts = [list(range(start, start + ep_size)) for start in starts]
    return case.subgroup(same_experts), case.subgroup(all_experts)


def cost(case):
    tensors = 1 if case.trial == NONE_TRIAL else 2
    clips = case.trial != SMALL_TRIAL
    elements = tensors * case.m * case.n
    return Cost(
        # 1 / ep_size folds into the norm and into the clipping factor.
        flops=(2 + clips) * elements,
        hbm=(1 + clips) * elements * case.itemsize,
        # The reference reduces three times, though one number of 4 bytes could carry both parts of the norm.
        link=link.all_reduce(4, case.world),
    )


def expert_gradients_not_divided(shared, expert, max_norm, norm_type=2.0, ep_size=1, *groups):
    return solution(shared, expert, max_norm, norm_type, 1, *groups)


def expert_part_not_summed_over_experts(shared, expert, max_norm, p, ep_size, fsdp_group, ep_fsdp_group, ep_group):
    return solution(shared, expert, max_norm, p, ep_size, fsdp_group, ep_fsdp_group, None)


def expert_part_summed_over_all_ranks(shared, expert, max_norm, p, ep_size, fsdp_group, ep_fsdp_group, ep_group):
    return solution(shared, expert, max_norm, p, ep_size, fsdp_group, fsdp_group, None)


def expert_gradients_not_clipped(shared, expert, max_norm, p, ep_size, *groups):
    copies = [grad if grad is None else grad.clone() for grad in expert]
    norm = solution(shared, copies, max_norm, p, ep_size, *groups)
    scale([grad for grad in expert if grad is not None], 1 / ep_size)
    return norm


MUTANTS = {
    "expert_gradients_not_divided": expert_gradients_not_divided,
    "expert_part_not_summed_over_experts": expert_part_not_summed_over_experts,
    "expert_part_summed_over_all_ranks": expert_part_summed_over_all_ranks,
    "expert_gradients_not_clipped": expert_gradients_not_clipped,
}
