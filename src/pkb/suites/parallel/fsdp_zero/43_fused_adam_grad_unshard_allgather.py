"""Adam on the rank's own shard of the weights, then the new weights are gathered.

The gradient comes reduced and averaged; there is no weight decay. The new moments are not returned, and the
arguments stay as they are. All arithmetic is in the dtype of the arguments, "master" weights included.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def adam(
    weight: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
) -> torch.Tensor:
    exp_avg = torch.add(exp_avg * beta1, grad, alpha=1 - beta1)
    exp_avg_sq = torch.addcmul(exp_avg_sq * beta2, grad, grad, value=1 - beta2)
    denominator = (exp_avg_sq / (1 - beta2**step)).sqrt() + eps
    return weight - lr * (exp_avg / (1 - beta1**step) / denominator)


def gathered(shard: torch.Tensor) -> torch.Tensor:
    full = shard.new_empty(dist.get_world_size() * shard.numel())
    dist.all_gather_into_tensor(full, shard)
    return full


def solution(
    grad_shard: torch.Tensor,
    master_shard: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
) -> torch.Tensor:
    assert step >= 1
    return gathered(adam(master_shard, grad_shard, exp_avg, exp_avg_sq, lr, beta1, beta2, eps, step))


PROBLEM = Problem(
    category="FSDP / ZeRO",
    source="distributed optimizers of Megatron-LM and DeepSpeed: fused Adam, then the parameter all-gather",
    sizes={"tiny": Size(3, 1), "paper": Size(1024, 1024), "large": Size(16777216, 1)},
    deviations={
        "values": "moments have the size of a gradient; the published ones are zero",
        "scalars": (
            "`lr` 0.4 to 0.6, `beta1` 0.8, `beta2` 0.7, `eps` 0.2 in place of 1e-3, 0.9, 0.999, 1e-8, so that a step "
            "shows in 16 bits; `step` follows the trial, as published"
        ),
    },
)


def elements(case):
    """Shard length: the published one up to M = 1024, growing with M beyond. N is not used."""
    return max(min(64 * case.m, 4096), 4 * case.m)


def inputs(case):
    count = elements(case)
    # Moments of the gradient's size, and decay rates far enough from 1 for the gradient to show in both.
    return (
        case.randn(count),
        case.randn(count),
        case.randn(count, scale=0.3),
        case.rand(count, low=0.1, high=1.0),
        0.4 + 0.1 * (case.trial % 3),
        0.8,
        0.7,
        0.2,
        1 + case.trial % 7,
    )


def cost(case):
    shard = elements(case) * case.itemsize
    return Cost(
        # Scalar factors fold into one for each term of a moment, as no moment is returned.
        flops=11 * elements(case),
        hbm=(4 + case.world) * shard,
        link=link.all_gather(case.world * shard, case.world),
    )


def weights_not_updated(_grad, master_shard, *_rest):
    return gathered(master_shard)


def bias_correction_forgotten(*args):
    return solution(*args[:-1], 10**9)


def second_moment_not_updated(grad_shard, master_shard, exp_avg, exp_avg_sq, lr, beta1, beta2, eps, step):
    undone = (exp_avg_sq - (1 - beta2) * grad_shard**2) / beta2
    return solution(grad_shard, master_shard, exp_avg, undone, lr, beta1, beta2, eps, step)


def own_shard_everywhere(grad_shard, master_shard, *state):
    return adam(master_shard, grad_shard, *state).repeat(dist.get_world_size())


MUTANTS = {
    "weights_not_updated": weights_not_updated,
    "bias_correction_forgotten": bias_correction_forgotten,
    "second_moment_not_updated": second_moment_not_updated,
    "own_shard_everywhere": own_shard_everywhere,
}
