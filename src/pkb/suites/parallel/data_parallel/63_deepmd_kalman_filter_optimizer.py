"""One step of a layer-wise Kalman filter optimiser, with the blocks of weights and covariances spread over the ranks.

Everything is float64, whatever the dtype of the run. The ranks share one gain, from the sum of all blocks' quadratic
forms (in which every block counts lambda once), and each applies it with its own error. Ranks may hold different
numbers and sizes of blocks. The caller's lists change: `weights` and `P` then hold the new local blocks. Returned are
the new weights of all ranks, rank 0's blocks first, the caller's own list `P`, and the next lambda.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link
from pkb.problems.cost import Link


def gathered_blocks(blocks: list[torch.Tensor]) -> list[torch.Tensor]:
    """The columns of all ranks, in rank order, whatever their number and length."""
    sizes: list[list[int]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(sizes, [block.shape[0] for block in blocks])
    flat = blocks[0].new_zeros(max(map(sum, sizes)), dtype=torch.float64)
    own = torch.cat(blocks).flatten()
    flat[: own.numel()] = own
    everybody = [torch.empty_like(flat) for _ in sizes]
    dist.all_gather(everybody, flat)
    return [
        block.to(own.dtype).unsqueeze(1)
        for row, lengths in zip(everybody, sizes, strict=True)
        for block in row[: sum(lengths)].clone().split(lengths)
    ]


def solution(
    H: list[torch.Tensor],
    error: torch.Tensor,
    weights: list[torch.Tensor],
    P: list[torch.Tensor],
    kalman_lambda: float,
    kalman_nue: float = 0.9987,
) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor]:
    dtype, device = weights[0].dtype, weights[0].device
    lam = torch.tensor(kalman_lambda, dtype=dtype, device=device)

    total = torch.zeros(1, 1, dtype=dtype, device=device)
    for h, p in zip(H, P, strict=True):
        total += lam + h.T @ p @ h
    if dist.is_initialized():
        dist.all_reduce(total)
    gain = 1 / total

    for i, h in enumerate(H):
        k = P[i] @ h
        weights[i] = weights[i] + gain * error.to(dtype) * k
        P[i] = (1 / lam) * (P[i] - gain * (k @ k.T))
    everywhere = gathered_blocks(weights) if dist.is_initialized() else weights
    return everywhere, P, kalman_nue * lam + 1 - kalman_nue


PROBLEM = Problem(
    category="Data Parallel",
    source="Kalman filter optimiser (RLEKF, LKF) of DeePMD-kit",
    sizes={"tiny": Size(2, 48), "paper": Size(8, 1024), "large": Size(8, 10240)},
    mutates=("weights", "P"),
    deviations={
        "values": (
            "`H` has unit length, `P` is a random positive definite matrix and `error` is 5 to 15; with the published "
            "identity and H of 0.01 the products can be left out and the update does not show"
        ),
        "scalars": "`kalman_lambda` is 0.9 and rises by 0.02 a trial, in place of 0.98",
        "variants": "in two trials ranks have other numbers and sizes of blocks (`H`, `weights`, `P`)",
        "result": (
            "the lists `weights` and `P` are compared as well as what is returned: the function changes them in place"
        ),
    },
)


def block_sizes(case, rank):
    """M blocks of N weights on each rank, or in some trials other numbers and sizes on every rank."""
    if case.trial % 2 == 0:
        return [case.n] * case.m
    return [case.n + 16 * i + 8 * rank for i in range(case.m + rank % 2)]


def inputs(case):
    H, weights, P = [], [], []
    for size in block_sizes(case, case.rank):
        H.append(case.randn(size, 1, scale=size**-0.5, dtype=torch.float64))
        weights.append(case.randn(size, 1, dtype=torch.float64))
        # Far from a multiple of the identity, as P is after some steps.
        factor = case.randn(size, size, scale=size**-0.5, dtype=torch.float64)
        P.append(0.5 * torch.eye(size, dtype=torch.float64, device=case.device) + factor @ factor.T)
    # Large enough for the step to be seen in the weights.
    error = case.rand(1, low=5.0, high=15.0, dtype=torch.float64).squeeze(0)
    return H, error, weights, P, 0.9 + 0.02 * case.trial, 0.9987


def cost(case):
    sizes = [block_sizes(case, rank) for rank in range(case.world)]
    own, everybody = sum(sizes[case.rank]), sum(map(sum, sizes))
    squares = sum(size**2 for size in sizes[case.rank])
    scalar = 8 if case.world > 1 else 0
    return Cost(
        # One product of P and H gives the quadratic form too; the reference does two.
        flops=5 * squares,
        hbm=8 * (2 * squares + 2 * own + everybody),
        link=Link(scalar, scalar) + link.all_gather_uneven(8 * own, 8 * everybody, case.world),
    )


def own_blocks_gain(H, error, weights, P, kalman_lambda, kalman_nue=0.9987):
    """As if no other rank had blocks."""
    gain = 1 / sum(kalman_lambda + h.T @ p @ h for h, p in zip(H, P, strict=True))
    for i, h in enumerate(H):
        k = P[i] @ h
        weights[i] = weights[i] + gain * error * k
        P[i] = (P[i] - gain * (k @ k.T)) / kalman_lambda
    lam = error.new_tensor(kalman_lambda)
    return gathered_blocks(weights), P, kalman_nue * lam + 1 - kalman_nue


def error_averaged(H, error, weights, P, kalman_lambda, kalman_nue=0.9987):
    mean = error.clone().unsqueeze(0)
    dist.all_reduce(mean)
    return solution(H, mean.squeeze(0) / dist.get_world_size(), weights, P, kalman_lambda, kalman_nue)


def covariance_only_rescaled(H, error, weights, P, kalman_lambda, kalman_nue=0.9987):
    before = list(P)
    everywhere, _, lam = solution(H, error, weights, P, kalman_lambda, kalman_nue)
    P[:] = [p / kalman_lambda for p in before]
    return everywhere, P, lam


def lists_left_alone(H, error, weights, P, kalman_lambda, kalman_nue=0.9987):
    return solution(H, error, list(weights), list(P), kalman_lambda, kalman_nue)


MUTANTS = {
    "own_blocks_gain": own_blocks_gain,
    "error_averaged": error_averaged,
    "covariance_only_rescaled": covariance_only_rescaled,
    "lists_left_alone": lists_left_alone,
}
