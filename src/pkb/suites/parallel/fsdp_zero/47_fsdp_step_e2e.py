"""One fully sharded training step of a two-layer MLP: gather parameters, differentiate, scatter gradients, AdamW.

The flat parameter vector is W1, b1, W2, b2 in the shapes of `param_shapes`, each row by row; every rank owns an
equal part of it and of both moments. The loss is the mean squared error over the local rows, gradients are
averaged over the ranks. Weight decay acts on the parameter as it was before the step. Returned are the rank's own
parts of the new parameters and of the new moments, the latter without bias correction.
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link
from pkb.suites.parallel._shared.mlp_step import adam_state, gradients_link, half_steps, network


def gathered(shard: torch.Tensor) -> torch.Tensor:
    flat = shard.new_empty(dist.get_world_size() * shard.numel())
    dist.all_gather_into_tensor(flat, shard)
    return flat


def local_gradient(
    X: torch.Tensor, y: torch.Tensor, flat: torch.Tensor, param_shapes: tuple[tuple[int, ...], ...]
) -> torch.Tensor:
    pieces = flat.split([math.prod(shape) for shape in param_shapes])
    W1, b1, W2, b2 = leaves = [
        piece.view(shape).detach().requires_grad_() for piece, shape in zip(pieces, param_shapes, strict=True)
    ]
    out = F.linear(F.relu(F.linear(X, W1, b1)), W2, b2)
    loss = (out - y).square().mean()
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, leaves)])


def mean_shard(gradient: torch.Tensor) -> torch.Tensor:
    world = dist.get_world_size()
    shard = gradient.new_empty(gradient.numel() // world)
    dist.reduce_scatter_tensor(shard, gradient)
    return shard / world


def adamw(
    param: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    step: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    exp_avg = torch.add(exp_avg * beta1, grad, alpha=1 - beta1)
    exp_avg_sq = torch.addcmul(exp_avg_sq * beta2, grad, grad, value=1 - beta2)
    denominator = (exp_avg_sq / (1 - beta2**step)).sqrt() + eps
    update = exp_avg / (1 - beta1**step) / denominator
    moved = torch.add(param, update, alpha=-lr)
    return torch.add(moved, param, alpha=-lr * weight_decay), exp_avg, exp_avg_sq


def solution(
    X_local: torch.Tensor,
    y_local: torch.Tensor,
    flat_param_shard: torch.Tensor,
    param_shapes: tuple[tuple[int, ...], ...],
    exp_avg_shard: torch.Tensor,
    exp_avg_sq_shard: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    step: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    assert step >= 1
    gradient = local_gradient(X_local, y_local, gathered(flat_param_shard), param_shapes)
    grad_shard = mean_shard(gradient)
    return adamw(
        flat_param_shard, grad_shard, exp_avg_shard, exp_avg_sq_shard, lr, beta1, beta2, eps, weight_decay, step
    )


PROBLEM = Problem(
    category="FSDP / ZeRO",
    source="PyTorch FSDP full shard, DeepSpeed ZeRO-3",
    sizes={"tiny": Size(24, 72), "paper": Size(1024, 1024), "large": Size(16384, 32768)},
    requires={
        "a hidden width from N / 2 on must make the parameter count a multiple of the world size": (
            lambda case: hidden_width(case) is not None
        )
    },
    deviations={
        "values": (
            "every shard of the parameters holds values and moments have the size of a gradient; published parameters "
            "are zero but for rank 0's shard"
        ),
        "scalars": (
            "`lr` 0.05, `beta1` 0.85, `beta2` 0.9, an `eps` of the gradient's size and `weight_decay` 3.0 in place of "
            "1e-3, 0.9, 0.999, 1e-8 and 0.01, so that a step shows in 16 bits; `step` follows the trial, as published"
        ),
    },
)


def outer_widths(case):
    """Input and output width: the published ones up to N = 1024, growing with N beyond."""
    return max(16, min(case.n, 256), case.n // 4), max(8, case.n // 4)


def parameter_count(d_in, hidden, d_out):
    return hidden * (d_in + 1) + d_out * (hidden + 1)


def hidden_width(case):
    """The first width from N / 2 on for which the ranks' parts are equal."""
    d_in, d_out = outer_widths(case)
    start = max(32, case.n // 2)
    fitting = (h for h in range(start, start + 1025) if parameter_count(d_in, h, d_out) % case.world == 0)
    return next(fitting, None)


def shape(case):
    """Local rows and the three widths."""
    d_in, d_out = outer_widths(case)
    return -(-case.m // case.world), d_in, hidden_width(case), d_out


def inputs(case):
    rows, d_in, hidden, d_out = shape(case)
    flat = torch.cat([p.flatten() for p in network(case.shared, d_in, hidden, d_out)])
    flat_param_shard = flat.chunk(case.world)[case.rank].clone()
    return (
        *half_steps(case, rows, d_in, d_out),
        flat_param_shard,
        ((hidden, d_in), (hidden,), (d_out, hidden), (d_out,)),
        *adam_state(case, flat_param_shard.numel(), rows, d_out),
        # Strong enough for the decay, and for which value decays, to show in 16 bits.
        3.0,
        1 + case.trial % 7,
    )


def cost(case):
    rows, d_in, hidden, d_out = shape(case)
    s, parameters = case.itemsize, parameter_count(d_in, hidden, d_out)
    batch = rows * (d_in + d_out)
    return Cost(
        flops=rows * hidden * (4 * d_in + 6 * d_out),
        hbm=(batch + 6 * parameters / case.world) * s,
        link=link.all_gather(parameters * s, case.world) + gradients_link(case, parameters, batch),
    )


def with_gradient(take_shard):
    def variant(X_local, y_local, flat_param_shard, param_shapes, *state):
        gradient = local_gradient(X_local, y_local, gathered(flat_param_shard), param_shapes)
        return adamw(flat_param_shard, take_shard(gradient), *state)

    return variant


def decay_after_the_update(*args):
    *state, weight_decay, step = args
    param, exp_avg, exp_avg_sq = solution(*state, 0.0, step)
    return param * (1 - args[6] * weight_decay), exp_avg, exp_avg_sq


def nothing_updated(_X, _y, flat_param_shard, _shapes, exp_avg_shard, exp_avg_sq_shard, *_rest):
    return flat_param_shard.clone(), exp_avg_shard.clone(), exp_avg_sq_shard.clone()


def bias_correction_forgotten(*args):
    return solution(*args[:-1], 10**9)


MUTANTS = {
    "gradients_summed_not_averaged": with_gradient(lambda g: mean_shard(g) * dist.get_world_size()),
    "own_gradient_only": with_gradient(lambda g: g.chunk(dist.get_world_size())[dist.get_rank()]),
    "decay_after_the_update": decay_after_the_update,
    "nothing_updated": nothing_updated,
    "bias_correction_forgotten": bias_correction_forgotten,
}
