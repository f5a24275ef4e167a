"""Sinkhorn-Knopp centering of teacher scores, with the samples spread over the ranks.

By turns the mass of every prototype (over the samples of all ranks) and of every sample is made equal. The
scores are float32 whatever the dtype of the run. The number of masked patches cancels, except without iterations:
then the result is exp(score / temperature), divided by its total over all ranks, times that number.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(
    teacher_output: torch.Tensor,
    teacher_temp: float,
    n_masked_patches_tensor: torch.Tensor,
    n_iterations: int = 3,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    Q = torch.exp(teacher_output.to(torch.float32) / teacher_temp).T
    prototypes = Q.shape[0]
    samples = n_masked_patches_tensor.to(torch.float32)
    dist.all_reduce(samples, group=group)
    mass = Q.sum()
    dist.all_reduce(mass, group=group)
    Q /= mass
    for _ in range(n_iterations):
        prototype_mass = Q.sum(dim=1, keepdim=True)
        dist.all_reduce(prototype_mass, group=group)
        Q /= prototype_mass
        Q /= prototypes
        Q /= Q.sum(dim=0, keepdim=True)
        Q /= samples
    Q *= samples
    return Q.T.contiguous()


PROBLEM = Problem(
    category="Data Parallel",
    source="teacher centering of the iBOT patch loss (DINOv2)",
    sizes={"tiny": Size(12, 40), "paper": Size(1024, 16384), "large": Size(8192, 131072)},
    deviations={
        "values": (
            "some prototypes are popular everywhere and some on one rank, so that a rank's own sums are no stand-in "
            "for all; the number of masked patches is random; published values are 0.01 times normal ones, all alike"
        ),
        "scalars": "`n_iterations` is 3, 1, 2 and 0 in turn",
    },
)

TEMPERATURE = 0.07
# Of each trial; the first is the published number.
ITERATIONS = [3, 1, 2, 0, 3]


def inputs(case):
    # Some prototypes are popular everywhere and some on one rank only: a rank's own sums do not stand for all.
    popular = case.shared.randn(case.n, scale=0.1, dtype=torch.float32)
    popular_here = case.randn(case.n, scale=TEMPERATURE, dtype=torch.float32)
    own = case.randn(case.m, case.n, scale=TEMPERATURE, dtype=torch.float32)
    masked = torch.tensor([case.integer(1, case.m + 1)], device=case.device)
    return own + popular + popular_here, TEMPERATURE, masked, ITERATIONS[case.trial % len(ITERATIONS)]


def cost(case):
    elements, iterations = case.m * case.n, ITERATIONS[case.trial % len(ITERATIONS)]
    # With the scalings kept as two vectors, an iteration is two matrix-vector products.
    return Cost(
        flops=(3 + 4 * iterations) * elements,
        hbm=2 * 4 * elements,
        link=link.all_reduce(4 * iterations * case.n if iterations else 8, case.world),
    )


def own_samples_only(teacher_output, teacher_temp, n_masked_patches_tensor, n_iterations=3, group=None):
    Q = torch.exp(teacher_output / teacher_temp)
    for _ in range(n_iterations):
        Q = Q / Q.sum(dim=0)
        Q = Q / Q.sum(dim=1, keepdim=True)
    return Q


def plain_softmax(teacher_output, teacher_temp, *rest):
    return torch.softmax(teacher_output / teacher_temp, dim=1)


def one_iteration_too_few(teacher_output, teacher_temp, n_masked_patches_tensor, n_iterations=3, group=None):
    return solution(teacher_output, teacher_temp, n_masked_patches_tensor, max(n_iterations - 1, 1), group)


def total_over_samples_kept(teacher_output, teacher_temp, n_masked_patches_tensor, n_iterations=3, group=None):
    samples = n_masked_patches_tensor.to(torch.float32)
    dist.all_reduce(samples, group=group)
    return solution(teacher_output, teacher_temp, n_masked_patches_tensor, n_iterations, group) / samples


MUTANTS = {
    "own_samples_only": own_samples_only,
    "plain_softmax": plain_softmax,
    "one_iteration_too_few": one_iteration_too_few,
    "total_over_samples_kept": total_over_samples_kept,
}
