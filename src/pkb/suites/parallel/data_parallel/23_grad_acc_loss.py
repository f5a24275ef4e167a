"""Mean loss per token over ranks that hold different numbers of tokens, and the gradient of each rank's loss.

Returns the sum of loss x local_valid_tokens over all ranks divided by global_valid_tokens, that sum itself, and
grad_normalized_loss x local / global + grad_loss_sum x local. A rank without valid tokens may bring a loss that is NaN
or infinite: it counts as zero. On any other rank such a loss spreads to all.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(
    loss: torch.Tensor,
    local_valid_tokens: torch.Tensor,
    global_valid_tokens: torch.Tensor,
    grad_normalized_loss: torch.Tensor,
    grad_loss_sum: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if local_valid_tokens == 0:
        loss = torch.nan_to_num(loss)
    loss_sum = loss * local_valid_tokens
    dist.all_reduce(loss_sum)

    grad = grad_normalized_loss * local_valid_tokens / global_valid_tokens
    if grad_loss_sum is not None:
        grad = grad + grad_loss_sum * local_valid_tokens
    return loss_sum / global_valid_tokens, loss_sum, grad


PROBLEM = Problem(
    category="Data Parallel",
    source="token-weighted loss normalisation for gradient accumulation (VeOmni)",
    sizes={"tiny": Size(8, 24), "paper": Size(1024, 1024), "large": Size(128, 32768)},
    requires={"M x N, about the number of tokens of a rank, is at least 4": lambda case: case.m * case.n >= 4},
    deviations={
        "values": (
            "losses, gradients and token counts are random and positive; the published counts are the same on all "
            "ranks, its gradients are 1 and 0, and then most terms drop out"
        ),
        "variants": (
            "in later trials a rank has no valid token, or a loss that is infinite or NaN, or `grad_loss_sum` is None"
        ),
    },
)

EMPTY_TRIAL, INFINITE_TRIAL, NAN_TRIAL, NO_SUM_TRIAL = 1, 2, 3, 4


def inputs(case):
    counts = case.shared.randint(1, 5, case.world) * count_unit(case)
    chosen = case.shared.integer(0, case.world)
    empty = case.trial in (EMPTY_TRIAL, INFINITE_TRIAL) and case.world > 1
    if empty:
        counts[chosen] = 0
    loss = positive(case, 0.25)
    if case.rank == chosen and (empty or case.trial == NAN_TRIAL):
        loss = torch.full_like(loss, -torch.inf if case.trial == INFINITE_TRIAL else torch.nan)
    total = counts.sum()
    # The sum's gradient weighs about as much as that of the mean, and neither cancels the other.
    grad_loss_sum = None if case.trial == NO_SUM_TRIAL else positive(case, 1 / (2 * case.world * count_unit(case)))
    return loss, counts[case.rank], total, positive(case, 0.25), grad_loss_sum


def count_unit(case):
    """A power of two near M x N / 4. Float16 cannot hold large counts."""
    unit = 2 ** ((case.m * case.n).bit_length() - 3)
    return min(unit, 2**9) if case.dtype is torch.float16 else unit


def positive(case, scale):
    return case.rand(1, low=scale, high=8 * scale)[0]


def cost(case):
    scalars = 6 if case.trial == NO_SUM_TRIAL else 7
    return Cost(
        flops=(4 if case.trial == NO_SUM_TRIAL else 6) + (case.world - 1) / case.world,
        hbm=scalars * case.itemsize + 16,
        link=link.all_reduce(case.itemsize, case.world),
    )


def mean_over_ranks(loss, local_valid_tokens, global_valid_tokens, *grads):
    _, loss_sum, grad = solution(loss, local_valid_tokens, global_valid_tokens, *grads)
    mean = torch.nan_to_num(loss) if local_valid_tokens == 0 else loss.clone()
    dist.all_reduce(mean)
    return mean / dist.get_world_size(), loss_sum, grad


def empty_rank_not_cleared(loss, local_valid_tokens, global_valid_tokens, *grads):
    _, _, grad = solution(loss, local_valid_tokens, global_valid_tokens, *grads)
    loss_sum = loss * local_valid_tokens
    dist.all_reduce(loss_sum)
    return loss_sum / global_valid_tokens, loss_sum, grad


def every_rank_cleared(loss, *rest):
    return solution(torch.nan_to_num(loss), *rest)


def gradient_of_the_sum_ignored(loss, local_valid_tokens, global_valid_tokens, grad_normalized_loss, _=None):
    return solution(loss, local_valid_tokens, global_valid_tokens, grad_normalized_loss)


MUTANTS = {
    "mean_over_ranks": mean_over_ranks,
    "empty_rank_not_cleared": empty_rank_not_cleared,
    "every_rank_cleared": every_rank_cleared,
    "gradient_of_the_sum_ignored": gradient_of_the_sum_ignored,
}
