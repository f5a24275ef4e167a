"""Sum over the ranks of the gradients of three LoRA matrices that all experts share.

The three tensors are changed in place and returned: what the caller passed must hold the sums afterwards.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(
    grad_fc1_1_lora_A: torch.Tensor,
    grad_fc1_2_lora_A: torch.Tensor,
    grad_fc2_lora_B: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    gradients = (grad_fc1_1_lora_A, grad_fc1_2_lora_A, grad_fc2_lora_B)
    for gradient in gradients:
        dist.all_reduce(gradient, group=group)
    return gradients


PROBLEM = Problem(
    category="Expert Parallel",
    source="backward pass of an expert-parallel group GEMM with shared LoRA adapters (VeOmni, xorl)",
    sizes={"tiny": Size(1, 24), "paper": Size(1024, 1024), "large": Size(1, 16384)},
    exact_sums=True,
    mutates=("grad_fc1_1_lora_A", "grad_fc1_2_lora_A", "grad_fc2_lora_B"),
    deviations={
        "values": "once small whole numbers, whose sum is compared bit for bit",
        "result": "the arguments are compared as well as what is returned: the function sums them in place",
    },
)

LORA_RANK = 8


def inputs(case):
    features = case.n
    return (
        case.randn(LORA_RANK, features),
        case.randn(LORA_RANK, features),
        case.randn(features, LORA_RANK),
        None,
    )


def cost(case):
    elements = 3 * LORA_RANK * case.n
    full = elements * case.itemsize
    return Cost(
        flops=elements * (case.world - 1) / case.world,
        hbm=2 * full,
        link=link.all_reduce(full, case.world),
    )


def arguments_left_alone(gate, up, down, group=None):
    return solution(gate.clone(), up.clone(), down.clone(), group)


def up_gradient_not_summed(gate, up, down, group=None):
    for gradient in (gate, down):
        dist.all_reduce(gradient, group=group)
    return gate, up, down


def averaged(gate, up, down, group=None):
    world = dist.get_world_size(group)
    return tuple(gradient.div_(world) for gradient in solution(gate, up, down, group))


MUTANTS = {
    "arguments_left_alone": arguments_left_alone,
    "up_gradient_not_summed": up_gradient_not_summed,
    "averaged": averaged,
}
