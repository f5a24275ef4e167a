"""Attention of an autoregressive video model under context parallelism, one range of tokens after the other.

Every rank holds its part of each of the R ranges, range after range, with all heads. For the attention the
heads are spread over the ranks instead: keys and values once, queries and results range by range. Of the tokens
of a range, in rank order, the keys and values beyond the first `clip_token_nums` are padding and dropped; the
queries there are computed all the same. `k_ranges` counts in the clipped tokens, all ranges joined. In 16-bit runs
all tensors are bfloat16.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link


def heads_to_ranks(x: torch.Tensor, world: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    """[tokens, heads, width] of this rank becomes [W, tokens, heads / W, width]: all ranks' tokens, own heads."""
    tokens, heads, width = x.shape
    sent = x.view(tokens, world, heads // world, width).transpose(0, 1).contiguous()
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    return received


def tokens_to_ranks(x: torch.Tensor, world: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    """[W * tokens, heads / W, width] with own heads becomes [tokens, heads, width] of this rank's tokens."""
    x = x.contiguous()
    received = torch.empty_like(x)
    dist.all_to_all_single(received, x, group=group)
    return received.view(world, -1, *x.shape[1:]).transpose(0, 1).flatten(1, 2)


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    repeats = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(repeats, dim=1) for x in (key, value))
    out = F.scaled_dot_product_attention(*(x.transpose(0, 1).unsqueeze(0) for x in (query, key, value)))
    return out.squeeze(0).transpose(0, 1)


def solution(
    query: torch.Tensor,
    key_value: torch.Tensor,
    k_ranges: torch.Tensor,
    cp_shuffle_num: int,
    clip_token_nums: int | None = None,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world, kv_heads = dist.get_world_size(group), key_value.shape[1]
    if kv_heads < world and world % kv_heads == 0:
        key_value = key_value.repeat_interleave(world // kv_heads, dim=1)
    if key_value.shape[1] % world or query.shape[1] % world or query.shape[0] % cp_shuffle_num:
        raise ValueError("heads must divide among the ranks, tokens among the ranges")
    tokens = query.shape[0] // cp_shuffle_num
    clip = clip_token_nums or world * tokens

    shared = heads_to_ranks(key_value, world, group)
    by_range = shared.unflatten(1, (cp_shuffle_num, tokens)).transpose(0, 1).flatten(1, 2)
    key, value = by_range[:, :clip].flatten(0, 1).chunk(2, dim=-1)

    outputs = []
    for own, (start, end) in zip(query.split(tokens), k_ranges.tolist(), strict=True):
        gathered = heads_to_ranks(own, world, group).flatten(0, 1)
        outputs.append(tokens_to_ranks(attend(gathered, key[start:end], value[start:end]), world, group))
    return torch.cat(outputs)


PROBLEM = Problem(
    category="Context Parallel",
    source="context shuffle overlap of MAGI-1 (SandAI)",
    sizes={"tiny": Size(17, 8), "paper": Size(12150, 128), "large": Size(24300, 128)},
    requires={"the query heads are split over the ranks": lambda case: heads(case)[0] % case.world == 0},
    deviations={
        "values": "queries are three times as large, so that a few of thousands of keys carry each result",
        "variants": (
            "later trials pose fewer ranges (`query`, `key_value`, `cp_shuffle_num`), ranges that look back or across "
            "two (`k_ranges`), fewer key heads, and `clip_token_nums` None"
        ),
    },
)


def heads(case):
    """Query heads, and key heads: one trial has fewer than there are ranks."""
    return 24 if case.world <= 4 else 48, max(1, case.world // 2) if case.trial == 2 else 8


def shape(case):
    """Ranges, tokens of a range over all ranks (padding not counted), tokens of a range on one rank."""
    real = case.m if case.world <= 4 else case.m * 16 // 9
    return [4, 3, 2, 1, 4][case.trial % 5], real, -(-real // case.world)


def key_ranges(case):
    """Where each range of queries looks: at itself, at all before too, or at a window across two ranges."""
    ranges, real, tokens = shape(case)
    clip = tokens * case.world if case.trial == 4 else real
    match case.trial:
        case 1 | 4:
            return [(0, (i + 1) * clip) for i in range(ranges)]
        case 2:
            return [(i * clip // 2, i * clip // 2 + clip) for i in range(ranges)]
    return [(i * clip, (i + 1) * clip) for i in range(ranges)]


def inputs(case):
    (ranges, real, tokens), (q_heads, kv_heads) = shape(case), heads(case)
    dtype = case.dtype if case.dtype is torch.float32 else torch.bfloat16
    # Queries large enough for a few keys to carry each result; thousands in equal parts would average to nothing.
    query = case.randn(ranges * tokens, q_heads, case.n, scale=3.0, dtype=dtype)
    key_value = case.randn(ranges * tokens, kv_heads, 2 * case.n, dtype=dtype)
    k_ranges = torch.tensor(key_ranges(case), device=case.device)
    return query, key_value, k_ranges, ranges, None if case.trial == 4 else real


def cost(case):
    (ranges, real, tokens), (q_heads, kv_heads), world = shape(case), heads(case), case.world
    s = case.itemsize
    keys = sum(end - start for start, end in key_ranges(case))
    queries = ranges * tokens * q_heads * case.n * s
    # Of keys and values only what is no padding crosses, one head at least to every rank.
    own = min(max(real - case.rank * tokens, 0), tokens)
    token = ranges * max(kv_heads, world) / world * 2 * case.n * s
    return Cost(
        flops=4 * keys * tokens * q_heads * case.n,
        hbm=2 * queries + ranges * tokens * kv_heads * 2 * case.n * s,
        link=link.all_to_all(2 * queries, world) + link.all_gather_uneven(own * token, real * token, world),
    )


def padding_not_dropped(query, key_value, k_ranges, cp_shuffle_num, clip_token_nums=None, group=None):
    return solution(query, key_value, k_ranges, cp_shuffle_num, None, group)


def own_tokens_only(query, key_value, k_ranges, cp_shuffle_num, clip_token_nums=None, group=None):
    blocks = zip(query.chunk(cp_shuffle_num), key_value.chunk(cp_shuffle_num), strict=True)
    return torch.cat([attend(q, *kv.chunk(2, dim=-1)) for q, kv in blocks])


def every_range_sees_itself(query, key_value, k_ranges, cp_shuffle_num, clip_token_nums=None, group=None):
    clip = clip_token_nums or dist.get_world_size(group) * query.shape[0] // cp_shuffle_num
    starts = torch.arange(cp_shuffle_num, device=query.device) * clip
    return solution(query, key_value, torch.stack((starts, starts + clip), 1), cp_shuffle_num, clip_token_nums, group)


def keys_and_values_exchanged(query, key_value, *rest):
    return solution(query, key_value.roll(key_value.shape[-1] // 2, dims=-1), *rest)


def key_heads_dealt_in_turn(query, key_value, *rest):
    heads = key_value.shape[1]
    return solution(query, key_value.unflatten(1, (-1, max(1, heads // 2))).transpose(1, 2).flatten(1, 2), *rest)


MUTANTS = {
    "padding_not_dropped": padding_not_dropped,
    "own_tokens_only": own_tokens_only,
    "every_range_sees_itself": every_range_sees_itself,
    "keys_and_values_exchanged": keys_and_values_exchanged,
    "key_heads_dealt_in_turn": key_heads_dealt_in_turn,
}
