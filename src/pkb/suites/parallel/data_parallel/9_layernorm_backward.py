"""Gradients of a layer norm's scale and shift, with the batch rows spread over the ranks."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(X_hat: torch.Tensor, dY: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    d_beta = dY.sum(dim=0)
    dist.all_reduce(d_beta)
    d_gamma = (dY * X_hat).sum(dim=0)
    dist.all_reduce(d_gamma)
    return d_gamma, d_beta


PROBLEM = Problem(
    category="Data Parallel",
    source="affine-gradient reduction of layer norm (Apex, Megatron-LM sequence parallelism)",
    sizes={"tiny": Size(64, 32), "paper": Size(1024, 1024), "large": Size(32768, 8192)},
    deviations={
        "values": (
            "rows of `X_hat` have unit variance, as a layer norm leaves them, not unit length; `dY` has a mean of its "
            "own on each rank, and is scaled by M^-1/2, so that a rank that is left out shows in every column"
        ),
    },
)


def inputs(case):
    # Rows of unit variance, as a layer norm leaves them. A mean that no rank shares keeps the sums
    # well away from zero, so that a missing rank shows in every column.
    X_hat = torch.nn.functional.layer_norm(case.randn(case.m, case.n, dtype=torch.float32), (case.n,))
    dY = case.randn(case.m, case.n, dtype=torch.float32) + case.randn(case.n, dtype=torch.float32)
    return X_hat.to(case.dtype), (dY * case.m**-0.5).to(case.dtype)


def cost(case):
    both = 2 * case.n * case.itemsize
    return Cost(
        flops=3 * case.m * case.n + 2 * case.n * (case.world - 1) / case.world,
        hbm=2 * case.m * case.n * case.itemsize + both,
        link=link.all_reduce(both, case.world),
    )


def gradients_swapped(X_hat, dY):
    d_gamma, d_beta = solution(X_hat, dY)
    return d_beta, d_gamma


def scale_gradient_not_reduced(X_hat, dY):
    return (dY * X_hat).sum(dim=0), solution(X_hat, dY)[1]


def averaged_over_rows(X_hat, dY):
    return solution(X_hat, dY / dY.shape[0])


MUTANTS = {
    "gradients_swapped": gradients_swapped,
    "scale_gradient_not_reduced": scale_gradient_not_reduced,
    "averaged_over_rows": averaged_over_rows,
}
