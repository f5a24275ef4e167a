"""Logits of a few decoded tokens from a vocabulary that is spread over the ranks, gathered on every rank.

All ranks hold the same hidden states; rank r holds the r-th block of rows of the output weights and of the bias.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def gathered(logits: torch.Tensor) -> list[torch.Tensor]:
    blocks = [torch.empty_like(logits) for _ in range(dist.get_world_size())]
    dist.all_gather(blocks, logits)
    return blocks


def solution(hidden_states: torch.Tensor, weight_shard: torch.Tensor, bias_shard: torch.Tensor) -> torch.Tensor:
    logits = hidden_states @ weight_shard.T + bias_shard
    return torch.cat(gathered(logits), dim=1)


PROBLEM = Problem(
    category="Tensor Parallel",
    source="column-parallel LM head with gathered output at decode time (Megatron-LM, vLLM)",
    sizes={"tiny": Size(3081, 40), "paper": Size(1024, 1024), "large": Size(131072, 8192)},
    deviations={
        "values": (
            "`weight_shard` is scaled by its fan-in, as large as the bias, so that results are of order 1 and an "
            "error can be told from rounding"
        ),
    },
)


def shape(case):
    """Tokens and vocabulary rows per rank; the hidden width is N."""
    vocabulary = max(case.m, 1024 * case.world)
    return min(max(case.m // 1024, 1), 8), -(-vocabulary // case.world)


def inputs(case):
    (tokens, rows), hidden = shape(case), case.n
    # Products and bias of the same size: neither drowns the other.
    return (
        case.shared.randn(tokens, hidden),
        case.randn(rows, hidden, scale=hidden**-0.5),
        case.randn(rows),
    )


def cost(case):
    (tokens, rows), hidden = shape(case), case.n
    s, logits = case.itemsize, tokens * case.world * rows
    return Cost(
        flops=2 * tokens * hidden * rows + tokens * rows,
        hbm=(rows * hidden + tokens * hidden + rows + logits) * s,
        link=link.all_gather(logits * s, case.world),
    )


def blocks_stacked_then_reshaped(hidden_states, weight_shard, bias_shard):
    blocks = gathered(hidden_states @ weight_shard.T + bias_shard)
    return torch.cat(blocks).view(hidden_states.shape[0], -1)


def bias_forgotten(hidden_states, weight_shard, bias_shard):
    return solution(hidden_states, weight_shard, torch.zeros_like(bias_shard))


def own_block_everywhere(hidden_states, weight_shard, bias_shard):
    return (hidden_states @ weight_shard.T + bias_shard).repeat(1, dist.get_world_size())


MUTANTS = {
    "blocks_stacked_then_reshaped": blocks_stacked_then_reshaped,
    "bias_forgotten": bias_forgotten,
    "own_block_everywhere": own_block_everywhere,
}
