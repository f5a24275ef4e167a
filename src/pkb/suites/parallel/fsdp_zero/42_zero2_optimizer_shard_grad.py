"""One training step of a two-layer MLP under ZeRO-2: gradients and Adam state are sharded, parameters are not.

Rank 0's parameters count, whatever the others hold; the moments stay each rank's own. The flat order is W1, b1,
W2, b2, each row by row, and rank r owns the r-th of W equal parts of it: a part may begin inside one tensor and
end inside another. The loss is the mean squared error over the local rows, gradients are averaged over the ranks.
Returned are the four new parameters, whole, and the new moments of the rank's own part.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link
from pkb.suites.parallel._shared.mlp_step import (
    adam_state,
    even_shape,
    gradients_link,
    half_steps,
    hidden_width,
    network,
    parameter_count,
)


def flat_from_rank_0(parameters: tuple[torch.Tensor, ...]) -> torch.Tensor:
    flat = torch.cat([p.flatten() for p in parameters])
    dist.broadcast(flat, 0)
    return flat


def cut(flat: torch.Tensor, like: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    pieces = flat.split([t.numel() for t in like])
    return [piece.view_as(t) for piece, t in zip(pieces, like, strict=True)]


def local_gradient(X: torch.Tensor, y: torch.Tensor, parameters: list[torch.Tensor]) -> torch.Tensor:
    W1, b1, W2, b2 = leaves = [p.detach().requires_grad_() for p in parameters]
    out = F.linear(F.relu(F.linear(X, W1, b1)), W2, b2)
    loss = (out - y).square().mean()
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, leaves)])


def mean_part(gradient: torch.Tensor) -> torch.Tensor:
    world = dist.get_world_size()
    part = gradient.new_empty(gradient.numel() // world)
    dist.reduce_scatter_tensor(part, gradient)
    return part / world


def adam_and_gather(
    flat: torch.Tensor,
    grad_part: torch.Tensor,
    exp_avg_part: torch.Tensor,
    exp_avg_sq_part: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    exp_avg = torch.add(exp_avg_part * beta1, grad_part, alpha=1 - beta1)
    exp_avg_sq = torch.addcmul(exp_avg_sq_part * beta2, grad_part, grad_part, value=1 - beta2)
    denominator = (exp_avg_sq / (1 - beta2**step)).sqrt() + eps
    update = exp_avg / (1 - beta1**step) / denominator
    new_part = flat.chunk(dist.get_world_size())[dist.get_rank()] - lr * update
    new_flat = torch.empty_like(flat)
    dist.all_gather_into_tensor(new_flat, new_part)
    return new_flat, exp_avg, exp_avg_sq


def solution(
    X_local: torch.Tensor,
    y_local: torch.Tensor,
    W1: torch.Tensor,
    b1: torch.Tensor,
    W2: torch.Tensor,
    b2: torch.Tensor,
    exp_avg_part: torch.Tensor,
    exp_avg_sq_part: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
) -> tuple[torch.Tensor, ...]:
    assert step >= 1
    parameters = (W1, b1, W2, b2)
    flat = flat_from_rank_0(parameters)
    gradient = local_gradient(X_local, y_local, cut(flat, parameters))
    new_flat, exp_avg, exp_avg_sq = adam_and_gather(
        flat, mean_part(gradient), exp_avg_part, exp_avg_sq_part, lr, beta1, beta2, eps, step
    )
    return *cut(new_flat, parameters), exp_avg, exp_avg_sq


PROBLEM = Problem(
    category="FSDP / ZeRO",
    source="DeepSpeed ZeRO stage 2 (arXiv 1910.02054)",
    sizes={"tiny": Size(24, 72), "paper": Size(1024, 1024), "large": Size(16384, 32768)},
    requires={
        "a hidden width from N / 2 on must make the parameter count a multiple of the world size": (
            lambda case: hidden_width(case) is not None
        )
    },
    deviations={
        "values": (
            "parameters are random on every rank and moments have the size of a gradient: with published zeros, ranks "
            "other than 0 and most terms of Adam count for nothing; no ReLU is near its corner"
        ),
        "scalars": (
            "`lr` 0.05, `beta1` 0.85, `beta2` 0.9 and an `eps` of the gradient's size in place of 1e-3, 0.9, 0.999, "
            "1e-8, so that a step shows in 16 bits; `step` follows the trial, as published"
        ),
    },
)


def inputs(case):
    rows, d_in, hidden, d_out = even_shape(case)
    part = parameter_count(d_in, hidden, d_out) // case.world
    return (
        *half_steps(case, rows, d_in, d_out),
        *network(case, d_in, hidden, d_out),
        *adam_state(case, part, rows, d_out),
        1 + case.trial % 7,
    )


def cost(case):
    rows, d_in, hidden, d_out = even_shape(case)
    s, parameters = case.itemsize, parameter_count(d_in, hidden, d_out)
    batch = rows * (d_in + d_out)
    read = batch + (parameters if case.rank == 0 else 0) + 2 * parameters / case.world
    return Cost(
        flops=rows * hidden * (4 * d_in + 6 * d_out),
        hbm=(read + parameters + 2 * parameters / case.world) * s,
        link=link.broadcast(parameters * s, case.world, case.rank == 0)
        + gradients_link(case, parameters, batch)
        + link.all_gather(parameters * s, case.world),
    )


def composed(start=flat_from_rank_0, take_part=mean_part):
    def variant(X_local, y_local, W1, b1, W2, b2, *state):
        parameters = (W1, b1, W2, b2)
        flat = start(parameters)
        gradient = local_gradient(X_local, y_local, cut(flat, parameters))
        new_flat, exp_avg, exp_avg_sq = adam_and_gather(flat, take_part(gradient), *state)
        return *cut(new_flat, parameters), exp_avg, exp_avg_sq

    return variant


def striped(gradient):
    return mean_part(gradient.view(-1, dist.get_world_size()).T.contiguous().flatten())


def parameters_not_updated(*args):
    return solution(*args[:8], 0.0, *args[9:])


def bias_correction_forgotten(*args):
    return solution(*args[:-1], 10**9)


MUTANTS = {
    "own_parameters_kept": composed(start=lambda parameters: torch.cat([p.flatten() for p in parameters])),
    "gradients_summed_not_averaged": composed(take_part=lambda g: mean_part(g) * dist.get_world_size()),
    "own_gradient_only": composed(take_part=lambda g: g.chunk(dist.get_world_size())[dist.get_rank()]),
    "parts_in_stripes": composed(take_part=striped),
    "parameters_not_updated": parameters_not_updated,
    "bias_correction_forgotten": bias_correction_forgotten,
}
