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
from pkb.suites.parallel._shared.delayed_fp8 import HISTORY, codes_link, elements, values_and_history

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
    deviations={
        "values": (
            "ranks differ in scale, and `amax_history` holds earlier maxima, of which by turns this call's, the "
            "oldest or another is the largest; published histories are all 1e-8, so that they never count. Values "
            "keep away from the middle between two codes"
        ),
    },
)


def inputs(case):
    return values_and_history(case, elements(case))


def cost(case):
    shard, s = elements(case), case.itemsize
    return Cost(
        # Maximum, division and product of every value.
        flops=3 * shard,
        hbm=(1 + case.world) * shard * s + 4 * HISTORY,
        # The reference sends the values that the codes stand for.
        link=codes_link(case),
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
