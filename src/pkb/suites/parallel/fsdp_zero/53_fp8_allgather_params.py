"""All-gather of parameter shards that each rank first rounds to float8 (e4m3) with delayed scaling.

Every rank has its own scale, the largest of its last 16 absolute maxima over 448, this call's included and the
oldest dropped. The history is bfloat16 whatever the parameters are: this call's maximum enters the scale as the
history stores it. Codes come from a true division in float32. What is gathered, in the dtype of the parameters,
are the values that codes and scale stand for, the rank's own shard included. Returned are the whole vector and the
rank's new history.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.cost import Link

FP8_MAX = 448.0


def updated(amax_history: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    latest = values.abs().max().to(torch.float32).to(amax_history.dtype)
    return torch.cat([amax_history[1:], latest.view(1)])


def scale_of(amax_history: torch.Tensor) -> torch.Tensor:
    return amax_history.max().clamp(min=1e-12).to(torch.float32) / FP8_MAX


def through_fp8(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    codes = (values.to(torch.float32) / scale).to(torch.float8_e4m3fn)
    return (codes.to(torch.float32) * scale).to(values.dtype)


def gathered(shard: torch.Tensor) -> torch.Tensor:
    full = shard.new_empty(dist.get_world_size() * shard.numel())
    dist.all_gather_into_tensor(full, shard)
    return full


def solution(flat_param_shard: torch.Tensor, amax_history: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    history = updated(amax_history, flat_param_shard)
    return gathered(through_fp8(flat_param_shard, scale_of(history))), history


PROBLEM = Problem(
    category="FSDP / ZeRO",
    source="FP8 parameter all-gather of FSDP (torchao, Transformer Engine's delayed scaling)",
    sizes={"tiny": Size(5, 1), "paper": Size(1024, 1024), "large": Size(16777216, 1)},
)

HISTORY = 16


def elements(case):
    """Shard length: the published one up to M = 1024, growing with M beyond. N is not used."""
    return max(min(64 * case.m, 4096), 4 * case.m)


def drawn_history(case, amax):
    """By turns: this call's maximum is the largest, or the oldest entry, or one that stays, or there is no past."""
    history = amax * case.rand(HISTORY, low=0.3, high=0.9, dtype=torch.float32)
    match case.trial:
        case 1:
            history[0] = 2.7 * amax
        case 2:
            history[1 + case.rank % (HISTORY - 1)] = 1.7 * amax
        case 3:
            history[-1] = (0.5 + case.rank % 2) * amax
        case 4:
            history[:] = 1e-8
    return history.to(torch.bfloat16)


def away_from_ties(values, scale):
    """Values are drawn towards their codes: midway between two codes the last bit of a division would decide."""
    steps = values / scale
    codes = steps.to(torch.float8_e4m3fn).to(torch.float32)
    return (codes + 0.8 * (steps - codes)) * scale


def inputs(case):
    count = elements(case)
    # Ranks differ in size by no power of two, which float8 would not notice. The largest value is one that all
    # dtypes can hold, so that the history stores it as it is.
    size = 0.6 + 0.37 * ((case.rank + case.trial) % 4)
    amax = torch.tensor(4.4 * size).to(torch.bfloat16).item()
    history = drawn_history(case, amax)
    scale = max(history[1:].max().item(), amax) / FP8_MAX
    params = case.randn(count, scale=size, dtype=torch.float32).clamp(-0.97 * amax, 0.97 * amax)
    params = away_from_ties(params, scale)
    params[case.integer(0, count)] = amax * (2 * case.integer(0, 2) - 1)
    return params.to(case.dtype), history


def cost(case):
    shard, others, s = elements(case), case.world - 1, case.itemsize
    # Codes of one byte and a float32 scale suffice; the reference sends the values they stand for.
    sent = others * (shard + 4)
    return Cost(
        # Maximum, division and product of every value.
        flops=3 * shard,
        hbm=(1 + case.world) * shard * s + 4 * HISTORY,
        link=Link(egress=sent, ingress=sent),
    )


def not_quantised(flat_param_shard, amax_history):
    return gathered(flat_param_shard), updated(amax_history, flat_param_shard)


def own_shard_left_as_it_was(flat_param_shard, amax_history):
    full, history = solution(flat_param_shard, amax_history)
    full.chunk(dist.get_world_size())[dist.get_rank()].copy_(flat_param_shard)
    return full, history


def past_maxima_ignored(flat_param_shard, amax_history):
    history = updated(amax_history, flat_param_shard)
    return gathered(through_fp8(flat_param_shard, scale_of(history[-1:]))), history


def oldest_maximum_kept(flat_param_shard, amax_history):
    history = updated(amax_history, flat_param_shard)
    scale = scale_of(torch.cat([amax_history[:1], history]))
    return gathered(through_fp8(flat_param_shard, scale)), history


def scaled_back_with_own_scale(flat_param_shard, amax_history):
    full, history = solution(flat_param_shard, amax_history)
    own = scale_of(history)
    factors = own / gathered(own.view(1))
    return (full.view(dist.get_world_size(), -1) * factors.unsqueeze(1)).flatten().to(full.dtype), history


MUTANTS = {
    "not_quantised": not_quantised,
    "own_shard_left_as_it_was": own_shard_left_as_it_was,
    "past_maxima_ignored": past_maxima_ignored,
    "oldest_maximum_kept": oldest_maximum_kept,
    "scaled_back_with_own_scale": scaled_back_with_own_scale,
}
