"""One data-parallel training step of a two-layer ReLU network: mean squared error, averaged gradients, Adam.

Rank 0's parameters and both of its Adam moments count; what other ranks pass for them is overwritten (in copies:
no argument is changed). The loss is the mean over all entries of the local output. Returned are the new
parameters, first moments and second moments, each in the order W1, b1, W2, b2.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link
from pkb.suites.parallel._shared.mlp_step import batch_and_parameters, local_rows, outer_widths, parameter_count


def joined(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return torch.cat([t.flatten() for t in tensors])


def cut(flat: torch.Tensor, like: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    parts = flat.split([t.numel() for t in like])
    return tuple(part.view_as(t) for part, t in zip(parts, like, strict=True))


def of_root(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    flat = joined(tensors)
    dist.broadcast(flat, 0)
    return flat


def local_gradient(X: torch.Tensor, y: torch.Tensor, parameters: tuple[torch.Tensor, ...]) -> torch.Tensor:
    with torch.enable_grad():
        leaves = [p.detach().requires_grad_() for p in parameters]
        W1, b1, W2, b2 = leaves
        loss = F.mse_loss(F.linear(F.relu(F.linear(X, W1, b1)), W2, b2), y)
        return joined(torch.autograd.grad(loss, leaves))


def averaged(gradient: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(gradient)
    return gradient / dist.get_world_size()


def adam(
    p: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    m = (m * beta1).add_(g, alpha=1 - beta1)
    v = (v * beta2).addcmul_(g, g, value=1 - beta2)
    denominator = (v / (1 - beta2**step)).sqrt_().add_(eps)
    update = (m / (1 - beta1**step)).div_(denominator).mul_(-lr)
    return p + update, m, v


def solution(
    X_local: torch.Tensor,
    y_local: torch.Tensor,
    W1: torch.Tensor,
    b1: torch.Tensor,
    W2: torch.Tensor,
    b2: torch.Tensor,
    exp_avg_W1: torch.Tensor,
    exp_avg_b1: torch.Tensor,
    exp_avg_W2: torch.Tensor,
    exp_avg_b2: torch.Tensor,
    exp_avg_sq_W1: torch.Tensor,
    exp_avg_sq_b1: torch.Tensor,
    exp_avg_sq_W2: torch.Tensor,
    exp_avg_sq_b2: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
) -> tuple[torch.Tensor, ...]:
    assert step >= 1
    parameters = (W1, b1, W2, b2)
    p = of_root(parameters)
    m = of_root((exp_avg_W1, exp_avg_b1, exp_avg_W2, exp_avg_b2))
    v = of_root((exp_avg_sq_W1, exp_avg_sq_b1, exp_avg_sq_W2, exp_avg_sq_b2))
    g = averaged(local_gradient(X_local, y_local, cut(p, parameters)))
    results = adam(p, m, v, g, lr, beta1, beta2, eps, step)
    return tuple(part for flat in results for part in cut(flat, parameters))


PROBLEM = Problem(
    category="Data Parallel",
    source="PyTorch DistributedDataParallel (arXiv 2006.15704) with an Adam step",
    sizes={"tiny": Size(16, 64), "paper": Size(1024, 1024), "large": Size(65536, 16384)},
    deviations={
        "values": (
            "parameters are random on every rank and moments are not zero: with published zeros, ranks other than 0 "
            "and most terms of Adam count for nothing; no ReLU is near its corner"
        ),
        "scalars": (
            "`lr` 0.05, `beta1` 0.9, `beta2` 0.95, `eps` 0.01 in place of 1e-3, 0.9, 0.999, 1e-8, so that a step "
            "shows in 16 bits; `step` follows the trial, as published"
        ),
    },
)

# Large enough for every term of Adam to show in the parameters, whatever the dtype.
LR, BETA1, BETA2, EPS = 0.05, 0.9, 0.95, 0.01


def shape(case):
    """Local rows, features in, hidden features, features out."""
    d_in, d_out = outer_widths(case)
    return local_rows(case), d_in, max(32, case.n // 2), d_out


def inputs(case):
    X, y, *parameters = batch_and_parameters(case, *shape(case))
    first = [case.randn(*p.shape, scale=0.05) for p in parameters]
    second = [case.rand(*p.shape, low=0.005, high=0.015) for p in parameters]
    return X, y, *parameters, *first, *second, LR, BETA1, BETA2, EPS, 1 + case.trial % 7


def cost(case):
    rows, d_in, hidden, d_out = shape(case)
    count = parameter_count(d_in, hidden, d_out)
    states = 3 * count * case.itemsize
    is_root = case.rank == 0
    return Cost(
        flops=rows * hidden * (4 * d_in + 6 * d_out) + 12 * count,
        hbm=rows * (d_in + d_out) * case.itemsize + states * (2 if is_root else 1),
        link=link.broadcast(states, case.world, is_root) + link.all_reduce(states / 3, case.world),
    )


def parameters_not_updated(*args):
    parameters = args[2:6]
    return *cut(of_root(parameters), parameters), *solution(*args)[4:]


def stepped(args, average=averaged, share=of_root):
    X, y, *rest = args
    parameters = rest[:4]
    p = of_root(parameters)
    g = average(local_gradient(X, y, cut(p, parameters)))
    results = adam(p, share(rest[4:8]), share(rest[8:12]), g, *rest[12:])
    return tuple(part for flat in results for part in cut(flat, parameters))


def own_moments_kept(*args):
    return stepped(args, share=joined)


def own_gradient_only(*args):
    return stepped(args, average=lambda gradient: gradient)


def gradients_summed(*args):
    return stepped(args, average=lambda gradient: averaged(gradient) * dist.get_world_size())


def bias_not_corrected(*args):
    return solution(*args[:-1], 10**6)


MUTANTS = {
    "parameters_not_updated": parameters_not_updated,
    "own_moments_kept": own_moments_kept,
    "own_gradient_only": own_gradient_only,
    "gradients_summed": gradients_summed,
    "bias_not_corrected": bias_not_corrected,
}
