"""One ZeRO-1 training step of a two-layer ReLU network: Adam's state and update are sharded over the ranks.

Rank 0's parameters count; what other ranks pass for them is overwritten (in copies: no argument is changed). Each
rank's moments are its own: they belong to its share of the flat vector W1, b1, W2, b2, whose borders fall inside
tensors. The loss is the mean over all entries of the local output, gradients are averaged over the ranks. Returned
are the new W1, b1, W2, b2, whole, and this rank's new first and second moments.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link
from pkb.suites.parallel._shared.mlp_step import batch_and_parameters, even_shape, hidden_width, parameter_count


def joined(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return torch.cat([t.flatten() for t in tensors])


def cut(flat: torch.Tensor, like: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    parts = flat.split([t.numel() for t in like])
    return tuple(part.view_as(t) for part, t in zip(parts, like, strict=True))


def of_root(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    flat = joined(tensors)
    dist.broadcast(flat, 0)
    return flat


def own_share(flat: torch.Tensor) -> torch.Tensor:
    return flat.chunk(dist.get_world_size())[dist.get_rank()]


def averaged_share(gradient: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(gradient)
    return own_share(gradient / dist.get_world_size())


def whole_again(share: torch.Tensor) -> torch.Tensor:
    flat = share.new_empty(dist.get_world_size() * share.numel())
    dist.all_gather_into_tensor(flat, share)
    return flat


def local_gradient(X: torch.Tensor, y: torch.Tensor, parameters: tuple[torch.Tensor, ...]) -> torch.Tensor:
    with torch.enable_grad():
        leaves = [p.detach().requires_grad_() for p in parameters]
        W1, b1, W2, b2 = leaves
        loss = F.mse_loss(F.linear(F.relu(F.linear(X, W1, b1)), W2, b2), y)
        return joined(torch.autograd.grad(loss, leaves))


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
    p = of_root(parameters)
    assert exp_avg_part.numel() * dist.get_world_size() == p.numel()
    g = averaged_share(local_gradient(X_local, y_local, cut(p, parameters)))
    share, m, v = adam(own_share(p), exp_avg_part, exp_avg_sq_part, g, lr, beta1, beta2, eps, step)
    return *cut(whole_again(share), parameters), m, v


PROBLEM = Problem(
    category="FSDP / ZeRO",
    source="DeepSpeed ZeRO stage 1 (arXiv 1910.02054)",
    sizes={"tiny": Size(16, 64), "paper": Size(1024, 1024), "large": Size(65536, 16384)},
    requires={
        "some hidden width from N / 2 on gives all ranks equally many parameters": (
            lambda case: hidden_width(case) is not None
        )
    },
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


def inputs(case):
    sizes = even_shape(case)
    share = parameter_count(*sizes[1:]) // case.world
    return (
        *batch_and_parameters(case, *sizes),
        case.randn(share, scale=0.05),
        case.rand(share, low=0.005, high=0.015),
        LR,
        BETA1,
        BETA2,
        EPS,
        1 + case.trial % 7,
    )


def cost(case):
    rows, d_in, hidden, d_out = even_shape(case)
    count = parameter_count(d_in, hidden, d_out)
    full = count * case.itemsize
    is_root = case.rank == 0
    read = rows * (d_in + d_out) * case.itemsize + (full if is_root else 0) + 2 * full / case.world
    written = full + 2 * full / case.world
    traffic = (
        link.broadcast(full, case.world, is_root)
        + link.reduce_scatter(full, case.world)
        + link.all_gather(full, case.world)
    )
    return Cost(
        flops=rows * hidden * (4 * d_in + 6 * d_out) + 12 * count / case.world,
        hbm=read + written,
        link=traffic,
    )


def stepped(args, average=averaged_share, share=own_share):
    X, y, *rest = args
    parameters, moments = rest[:4], rest[4:6]
    p = of_root(parameters)
    g = average(local_gradient(X, y, cut(p, parameters)))
    new, m, v = adam(share(p), *moments, g, *rest[6:])
    return *cut(whole_again(new), parameters), m, v


def parameters_not_updated(*args):
    parameters = args[2:6]
    return *cut(of_root(parameters), parameters), *solution(*args)[4:]


def moments_of_rank_0(*args):
    return solution(*args[:6], of_root(args[6:7]), of_root(args[7:8]), *args[8:])


def own_gradient_only(*args):
    return stepped(args, average=own_share)


def gradients_summed(*args):
    return stepped(args, average=lambda gradient: averaged_share(gradient) * dist.get_world_size())


def own_parameters_updated(*args):
    return stepped(args, share=lambda _: own_share(joined(args[2:6])))


MUTANTS = {
    "parameters_not_updated": parameters_not_updated,
    "moments_of_rank_0": moments_of_rank_0,
    "own_gradient_only": own_gradient_only,
    "gradients_summed": gradients_summed,
    "own_parameters_updated": own_parameters_updated,
}
