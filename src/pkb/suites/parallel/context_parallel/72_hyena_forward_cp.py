"""Gated long convolution of Hyena with the sequence spread over the ranks: x1 * (h conv (x2 * v) + bias * x2 * v).

The inputs hold all channels of a part of the sequence, of length L = W * l. With zigzag splitting it has 2W chunks and
rank r holds chunk r, then chunk 2W - 1 - r; else rank r holds block r. Channel c has the filter c // group_dim of h and
its own bias; both are the same on all ranks.

The convolution is circular with period 2L: a filter longer than L + 1 wraps around and reaches into the future, and is
cut at 2L. It is done in float32 with the bias; x2 * v and its result are rounded to the dtype of the inputs, and so is
the product with x1. The result has the channels last.
"""

import math

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def to_channels(x: torch.Tensor, zigzag: bool, group: dist.ProcessGroup | None) -> torch.Tensor:
    """From all channels of the own part of the sequence to own channels of the whole, in natural order."""
    world = dist.get_world_size(group)
    blocks = x.unflatten(1, (world, -1)).transpose(0, 1).contiguous()
    parts = torch.empty_like(blocks)
    dist.all_to_all_single(parts, blocks, group=group)
    if zigzag:
        first, second = parts.chunk(2, dim=-1)
        parts = torch.cat((first, second.flip(0)))
    return parts.permute(1, 2, 0, 3).flatten(2)


def to_sequence(x: torch.Tensor, zigzag: bool, group: dist.ProcessGroup | None) -> torch.Tensor:
    """The way back."""
    world = dist.get_world_size(group)
    if zigzag:
        first, second = x.unflatten(-1, (2, world, -1)).unbind(2)
        parts = torch.cat((first, second.flip(2)), dim=-1)
    else:
        parts = x.unflatten(-1, (world, -1))
    parts = parts.permute(2, 0, 1, 3).contiguous()
    blocks = torch.empty_like(parts)
    dist.all_to_all_single(blocks, parts, group=group)
    return blocks.transpose(0, 1).flatten(1, 2)


def fft_convolution(u: torch.Tensor, filters: torch.Tensor) -> torch.Tensor:
    length = u.shape[-1]
    spectrum = torch.fft.rfft(u, n=2 * length) * torch.fft.rfft(filters, n=2 * length)
    return torch.fft.irfft(spectrum, n=2 * length)[..., :length]


def solution(
    x1_seq: torch.Tensor,
    x2_seq: torch.Tensor,
    v_seq: torch.Tensor,
    h: torch.Tensor,
    conv_bias: torch.Tensor,
    num_groups: int,
    group_dim: int,
    group: dist.ProcessGroup | None = None,
    with_zigzag_splitting: bool = True,
) -> torch.Tensor:
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    x1, x2, v = (to_channels(x, with_zigzag_splitting, group) for x in (x1_seq, x2_seq, v_seq))
    filters = h.chunk(world)[rank].repeat_interleave(group_dim, dim=0).to(torch.float32)
    bias = conv_bias.chunk(world)[rank].to(torch.float32).unsqueeze(-1)

    u = (x2 * v).to(torch.float32)
    y = (fft_convolution(u, filters) + u * bias).to(x1.dtype)
    return to_sequence(x1 * y, with_zigzag_splitting, group).transpose(1, 2).contiguous()


PROBLEM = Problem(
    category="Context Parallel",
    source="long convolution of StripedHyena 2 / Evo 2 under all-to-all context parallelism (Savanna, NeMo)",
    sizes={"tiny": Size(16, 4), "paper": Size(1024, 1024), "large": Size(4096, 32768)},
    requires={
        "the M channels, in groups of one or two, are split over the ranks": lambda case: (
            case.m % (2 * case.world) == 0
        ),
    },
    deviations={
        "values": (
            "filters `h` are random and decay, so that they reach across ranks with norm 1; the published ones are "
            "the numbers from 0 on, whose sum drowns everything else"
        ),
        "variants": (
            "later trials pose a batch of two (`x1_seq`, `x2_seq`, `v_seq`), two channels a filter (`num_groups`, "
            "`group_dim`), short and long filters (`h`), and `with_zigzag_splitting` False"
        ),
    },
)


def shape(case):
    """Batch, channels per filter, length of the filters, and whether the sequence is in zigzag order."""
    batch = 2 if case.trial in (1, 2) else 1
    group_dim = 2 if case.trial in (2, 4) else 1
    # In turn a short filter, and one that wraps around up to 4 ranks.
    taps = {1: 3, 3: 10 * case.n}.get(case.trial, 4 * case.n)
    return batch, group_dim, taps, case.trial not in (1, 4)


def inputs(case):
    batch, group_dim, taps, zigzag = shape(case)
    x1, x2, v = (case.randn(batch, case.m, 2 * case.n) for _ in range(3))
    # A decay over the length of the filter, so that it reaches across ranks; its norm is about 1.
    decay = torch.exp(-2 * torch.arange(taps, device=case.device, dtype=torch.float32) / taps)
    h = case.shared.randn(case.m // group_dim, taps, dtype=torch.float32) * decay / decay.norm()
    bias = case.shared.randn(case.m)
    return x1, x2, v, h.to(case.dtype), bias, case.m // group_dim, group_dim, None, zigzag


def cost(case):
    batch, group_dim, taps, _ = shape(case)
    channels, local = case.m // case.world, 2 * case.n
    length, s = case.world * local, case.itemsize
    elements = batch * case.m * local
    by_fft = channels * (2 * batch + 1 / group_dim) * 2.5 * 2 * length * math.log2(2 * length)
    # A tap at distance t joins |length - t| pairs of places. The reference transforms even for a few taps.
    directly = 2 * channels * batch * sum(abs(length - tap) for tap in range(min(taps, 2 * length)))
    # x2 * v can be formed before the exchange and x1 applied after it: two of the reference's four.
    return Cost(
        flops=min(by_fft, directly) + 4 * elements,
        hbm=(4 * elements + channels // group_dim * min(taps, 2 * length) + channels) * s,
        link=link.all_to_all(2 * elements * s, case.world),
    )


def zigzag_taken_for_blocks(*args):
    return solution(*args[:8], False)


def bias_forgotten(x1_seq, x2_seq, v_seq, h, conv_bias, *rest):
    return solution(x1_seq, x2_seq, v_seq, h, torch.zeros_like(conv_bias), *rest)


def filters_of_the_first_rank(x1_seq, x2_seq, v_seq, h, conv_bias, *rest):
    world = dist.get_world_size()
    return solution(x1_seq, x2_seq, v_seq, h.chunk(world)[0].repeat(world, 1), conv_bias, *rest)


def history_cut_at_the_rank(x1_seq, x2_seq, v_seq, h, conv_bias, num_groups, group_dim, *rest):
    u = (x2_seq * v_seq).to(torch.float32)
    y = fft_convolution(u, h.repeat_interleave(group_dim, dim=0).to(torch.float32)) + u * conv_bias.unsqueeze(-1)
    return (x1_seq * y.to(x1_seq.dtype)).transpose(1, 2).contiguous()


MUTANTS = {
    "zigzag_taken_for_blocks": zigzag_taken_for_blocks,
    "bias_forgotten": bias_forgotten,
    "filters_of_the_first_rank": filters_of_the_first_rank,
    "history_cut_at_the_rank": history_cut_at_the_rank,
}
