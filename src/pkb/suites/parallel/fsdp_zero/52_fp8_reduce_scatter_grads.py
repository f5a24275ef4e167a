"""Average of gradients that each rank first rounds to float8 (e4m3) with delayed scaling; each keeps its shard.

Every rank has its own scale, the largest of its last 16 absolute maxima over 448, this call's included and the
oldest dropped. The history is bfloat16 whatever the gradients are: this call's maximum enters the scale as the
history stores it. Codes come from a true division in float32. What is summed, in the dtype of the gradients, are
the values that codes and scale stand for. Returned are the shard and the rank's new history.
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


def mean_shard(values: torch.Tensor) -> torch.Tensor:
    world = dist.get_world_size()
    shard = values.new_empty(values.numel() // world)
    dist.reduce_scatter_tensor(shard, values)
    return shard / world


def solution(flat_grads: torch.Tensor, amax_history: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    history = updated(amax_history, flat_grads)
    return mean_shard(through_fp8(flat_grads, scale_of(history))), history


PROBLEM = Problem(
    category="FSDP / ZeRO",
    source="FP8 training with delayed scaling (Transformer Engine, FP8-LM), gradient reduce-scatter of ZeRO-2 and FSDP",
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
    return values_and_history(case, case.world * elements(case))


def cost(case):
    shard, s = elements(case), case.itemsize
    return Cost(
        # Maximum, division and product of every value, then the average.
        flops=4 * case.world * shard,
        hbm=(case.world + 1) * shard * s + 4 * HISTORY,
        # The reference sends the values that the codes stand for.
        link=codes_link(case),
    )


def not_quantised(flat_grads, amax_history):
    return mean_shard(flat_grads), updated(amax_history, flat_grads)


def past_maxima_ignored(flat_grads, amax_history):
    history = updated(amax_history, flat_grads)
    return mean_shard(through_fp8(flat_grads, scale_of(history[-1:]))), history


def oldest_maximum_kept(flat_grads, amax_history):
    history = updated(amax_history, flat_grads)
    scale = scale_of(torch.cat([amax_history[:1], history]))
    return mean_shard(through_fp8(flat_grads, scale)), history


def one_scale_for_all_ranks(flat_grads, amax_history):
    history = updated(amax_history, flat_grads)
    scale = scale_of(history)
    dist.all_reduce(scale, dist.ReduceOp.MAX)
    return mean_shard(through_fp8(flat_grads, scale)), history


def summed_not_averaged(flat_grads, amax_history):
    shard, history = solution(flat_grads, amax_history)
    return shard * dist.get_world_size(), history


MUTANTS = {
    "not_quantised": not_quantised,
    "past_maxima_ignored": past_maxima_ignored,
    "oldest_maximum_kept": oldest_maximum_kept,
    "one_scale_for_all_ranks": one_scale_for_all_ranks,
    "summed_not_averaged": summed_not_averaged,
}
