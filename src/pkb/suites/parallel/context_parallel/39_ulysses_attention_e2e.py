"""Ulysses attention block on sequence shards: QKV projection, attention on whole sequences, output projection.

An all-to-all gives each rank its share of the heads for all tokens, in rank order; every token attends to all
tokens of the sequence, or with `causal` to those not after it; a second all-to-all brings the heads back to the
tokens' owners. All ranks hold the same weights. The scale of the scores is head width ** -0.5.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def all_to_all(x: torch.Tensor, scatter_dim: int, gather_dim: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    blocks = torch.stack(x.chunk(dist.get_world_size(group), dim=scatter_dim))
    received = torch.empty_like(blocks)
    dist.all_to_all_single(received, blocks, group=group)
    return torch.cat(received.unbind(), dim=gather_dim)


def projected(hidden_states: torch.Tensor, w_qkv: torch.Tensor, num_heads: int) -> torch.Tensor:
    """[batch, tokens, 3, heads, head width]: q, k and v."""
    return F.linear(hidden_states, w_qkv).unflatten(-1, (3, num_heads, -1))


def solution(
    hidden_states: torch.Tensor,
    w_qkv: torch.Tensor,
    w_o: torch.Tensor,
    group: dist.ProcessGroup | None = None,
    num_heads: int = 8,
    causal: bool = False,
) -> torch.Tensor:
    qkv = projected(hidden_states, w_qkv, num_heads)
    q, k, v = all_to_all(qkv, scatter_dim=3, gather_dim=1, group=group).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    own_tokens = all_to_all(mixed.transpose(1, 2), scatter_dim=1, gather_dim=2, group=group)
    return F.linear(own_tokens.flatten(2), w_o)


PROBLEM = Problem(
    category="Context Parallel",
    source="DeepSpeed-Ulysses attention (arXiv 2309.14509), in VeOmni's form",
    sizes={"tiny": Size(128, 1024), "paper": Size(1024, 1024), "large": Size(64, 1048576)},
    requires={"the 8 heads are split over the ranks": lambda case: HEADS % case.world == 0},
    deviations={
        "function": (
            "attention is over tokens, on [batch, heads, tokens, width], and the mask is over tokens: the Ulysses of "
            "its paper. The published code passes [batch, tokens, heads, width] for q, k, v in that place, so that it "
            "attends over the heads of one token; that needs no communication, and its result depends on the number "
            "of ranks"
        ),
        "values": (
            "`w_qkv` and `w_o` are scaled by their fan-in, and the same on all ranks; with the published normal "
            "weights the softmax picks one entry and results reach 2000"
        ),
        "variants": "`causal` is True in every other trial",
    },
)

HEADS, WIDTH = 8, 64
FEATURES = HEADS * WIDTH


def shape(case):
    """Batch and local sequence length."""
    return max(1, case.m // 64), max(1, case.n // 64 // case.world)


def causal(case):
    return case.trial % 2 == 1


def inputs(case):
    batch, tokens = shape(case)
    return (
        case.randn(batch, tokens, FEATURES),
        case.shared.randn(3 * FEATURES, FEATURES, scale=FEATURES**-0.5),
        case.shared.randn(FEATURES, FEATURES, scale=FEATURES**-0.5),
        None,
        HEADS,
        causal(case),
    )


def cost(case):
    batch, tokens = shape(case)
    every = case.world * tokens
    pairs = every * (every + 1) / 2 if causal(case) else every * every
    shard = batch * tokens * FEATURES * case.itemsize
    return Cost(
        flops=8 * batch * tokens * FEATURES**2 + 4 * batch * pairs * FEATURES / case.world,
        hbm=2 * shard + 4 * FEATURES**2 * case.itemsize,
        # The reference moves q, k, v and the output, though at 2 ranks the hidden states are less.
        link=least_traffic(case, shard),
    )


def least_traffic(case, shard):
    """Of two ways the cheaper: q, k, v and the output by heads, or the hidden states themselves to all who need them.

    The second projects every token on several ranks; it moves less at 2 ranks, and under a causal mask at more.
    """
    by_heads = 4 * shard * (case.world - 1) / case.world
    later, earlier = case.world - 1 - case.rank, case.rank
    takers, givers = (later, earlier) if causal(case) else (case.world - 1, case.world - 1)
    return Link(egress=min(by_heads, takers * shard), ingress=min(by_heads, givers * shard))


def own_tokens_only(hidden_states, w_qkv, w_o, group=None, num_heads=8, causal=False):
    q, k, v = projected(hidden_states, w_qkv, num_heads).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return F.linear(mixed.transpose(1, 2).flatten(2), w_o)


def heads_attend_within_a_token(hidden_states, w_qkv, w_o, group=None, num_heads=8, causal=False):
    q, k, v = projected(hidden_states, w_qkv, num_heads).unbind(2)
    return F.linear(F.scaled_dot_product_attention(q, k, v, is_causal=causal).flatten(2), w_o)


def mask_forgotten(hidden_states, w_qkv, w_o, group=None, num_heads=8, causal=False):
    return solution(hidden_states, w_qkv, w_o, group, num_heads, False)


MUTANTS = {
    "own_tokens_only": own_tokens_only,
    "heads_attend_within_a_token": heads_attend_within_a_token,
    "mask_forgotten": mask_forgotten,
}
