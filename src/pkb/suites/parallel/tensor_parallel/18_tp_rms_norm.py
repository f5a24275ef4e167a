"""RMSNorm over a hidden dim that is spread over the ranks."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(local_hidden_states: torch.Tensor, local_weight: torch.Tensor, variance_epsilon: float) -> torch.Tensor:
    wide = local_hidden_states.to(torch.float32)
    squares = wide.pow(2).sum(dim=-1, keepdim=True)
    dist.all_reduce(squares)
    variance = squares / (wide.shape[-1] * dist.get_world_size())
    normed = wide * torch.rsqrt(variance + variance_epsilon)
    return local_weight * normed.to(local_hidden_states.dtype)


PROBLEM = Problem(
    category="Tensor Parallel",
    source="LLaMA's RMSNorm under tensor parallelism (Hugging Face, Megatron-LM)",
    sizes={"tiny": Size(32, 48), "paper": Size(1024, 1024), "large": Size(65536, 8192)},
    deviations={
        "values": (
            "rows and ranks differ in scale, some rows are so small that `variance_epsilon` matters, and every ninth "
            "is zero: a rank's own mean square is no stand-in for that of all ranks"
        ),
    },
)


def inputs(case):
    # Ranks and rows differ in scale, so that a rank's own mean square is no stand-in for all; some
    # rows are small enough for eps to matter, and every ninth is zero on all ranks.
    row = torch.arange(case.m, device=case.device).unsqueeze(1)
    scale = case.rand(case.m, 1, low=0.25, high=2.25, dtype=torch.float32)
    scale = torch.where(row % 5 == 2, scale * 3e-3, scale)
    scale = torch.where(row % 9 == 4, torch.zeros_like(scale), scale)
    hidden = case.randn(case.m, case.n, dtype=torch.float32) * scale
    return hidden.to(case.dtype), case.randn(case.n), 1e-5


def cost(case):
    m, n, s = case.m, case.n, case.itemsize
    return Cost(flops=4 * m * n, hbm=(2 * m * n + n) * s, link=link.all_reduce(4 * m, case.world))


def summed_over_ranks(local):
    total = local.clone()
    dist.all_reduce(total)
    return total


def with_root_mean_square(local_hidden_states, local_weight, root_mean_square):
    return local_weight * (local_hidden_states.float() / root_mean_square).to(local_hidden_states.dtype)


def own_mean_square(local_hidden_states):
    return local_hidden_states.float().pow(2).mean(dim=-1, keepdim=True)


def divided_by_own_width(local_hidden_states, local_weight, variance_epsilon):
    variance = summed_over_ranks(own_mean_square(local_hidden_states))
    return with_root_mean_square(local_hidden_states, local_weight, (variance + variance_epsilon).sqrt())


def eps_outside_the_root(local_hidden_states, local_weight, variance_epsilon):
    variance = summed_over_ranks(own_mean_square(local_hidden_states)) / dist.get_world_size()
    return with_root_mean_square(local_hidden_states, local_weight, variance.sqrt() + variance_epsilon)


def roots_averaged(local_hidden_states, local_weight, variance_epsilon):
    own_root = (own_mean_square(local_hidden_states) + variance_epsilon).sqrt()
    root = summed_over_ranks(own_root) / dist.get_world_size()
    return with_root_mean_square(local_hidden_states, local_weight, root)


MUTANTS = {
    "divided_by_own_width": divided_by_own_width,
    "eps_outside_the_root": eps_outside_the_root,
    "roots_averaged": roots_averaged,
}
