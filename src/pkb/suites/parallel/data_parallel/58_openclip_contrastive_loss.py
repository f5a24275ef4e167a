"""Sigmoid contrastive loss of images against the texts of all ranks, the texts passed from neighbour to neighbour.

Each image's own text is its only match; every other text, of this rank and of the others, is a mismatch. Each
rank returns the loss of its own images, over the texts of all ranks, divided by the number of its images: there is
no mean over the ranks. Logits, log-sigmoids and the sums are of the features' dtype. A group of None is WORLD.
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link


def from_neighbours(texts: dict[int, torch.Tensor], group: dist.ProcessGroup) -> dict[int, torch.Tensor]:
    """For each step, what the rank that many places on holds under it; in turn, hand on what is held here."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    received = {step: torch.empty_like(text) for step, text in texts.items()}
    transfers = []
    for step, text in texts.items():
        source, target = (dist.get_global_rank(group, (rank + way) % size) for way in (step, -step))
        transfers.append(dist.P2POp(dist.isend, text, target, group))
        transfers.append(dist.P2POp(dist.irecv, received[step], source, group))
    for work in dist.batch_isend_irecv(transfers):
        work.wait()
    return received


def pair_loss(
    images: torch.Tensor, texts: torch.Tensor, logit_scale: float, logit_bias: float, matching: bool
) -> torch.Tensor:
    """The loss of all pairs; where `matching`, image i belongs to text i."""
    logits = (logit_scale * images) @ texts.T + logit_bias
    signs = -torch.ones_like(logits)
    if matching:
        signs.fill_diagonal_(1.0)
    return -F.logsigmoid(signs * logits).sum() / images.shape[0]


def solution(
    image_features: torch.Tensor,
    text_features: torch.Tensor,
    logit_scale: float,
    logit_bias: float = 0.0,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    group = group or dist.group.WORLD
    size = dist.get_world_size(group)
    loss = pair_loss(image_features, text_features, logit_scale, logit_bias, matching=True)
    texts = {1: text_features, -1: text_features}
    for _ in range((size - 1) // 2):
        texts = from_neighbours(texts, group)
        for text in texts.values():
            loss = loss + pair_loss(image_features, text, logit_scale, logit_bias, matching=False)
    if size % 2 == 0:
        (opposite,) = from_neighbours({1: texts[1]}, group).values()
        loss = loss + pair_loss(image_features, opposite, logit_scale, logit_bias, matching=False)
    return loss


PROBLEM = Problem(
    category="Data Parallel",
    source="open_clip's SigLIP loss with neighbour exchange (Zhai et al. 2023)",
    sizes={"tiny": Size(16, 16), "paper": Size(1024, 1024), "large": Size(65536, 1152)},
    deviations={
        "values": "texts lie near their images, as in training; the published ones are unrelated",
        "scalars": (
            "`logit_scale` is 16 to 24 and `logit_bias` goes with it, in place of 10 and -10, under which the "
            "mismatches add up to almost nothing and other ranks do not count"
        ),
    },
)


def shape(case):
    """Pairs on each rank, and the features' width."""
    return max(1, case.m // case.world), max(16, case.n)


def inputs(case):
    pairs, width = shape(case)
    images = F.normalize(case.randn(pairs, width, dtype=torch.float32))
    noise = case.randn(pairs, width, scale=width**-0.5, dtype=torch.float32)
    texts = F.normalize(images + 0.8 * noise)
    # As in training, the bias offsets the number of texts and what exp makes of chance likenesses: the mismatches add
    # up to a loss of order one, to which every rank contributes. The sharper the scale, the more an error in a
    # remote feature weighs against the rounding of the sum.
    scale = float(case.shared.rand(1, low=16.0, high=24.0, dtype=torch.float32))
    offset = float(case.shared.rand(1, low=-0.5, high=1.5, dtype=torch.float32))
    bias = offset - math.log(case.world * pairs) - min(scale**2 / (2 * width), scale / 2)
    return images.to(case.dtype), texts.to(case.dtype), scale, bias


def cost(case):
    pairs, width = shape(case)
    block = pairs * width * case.itemsize
    return Cost(
        flops=2 * pairs**2 * width * case.world,
        hbm=2 * block + case.itemsize,
        link=link.all_gather(case.world * block, case.world),
    )


def own_texts_only(image_features, text_features, logit_scale, logit_bias=0.0, group=None):
    return pair_loss(image_features, text_features, logit_scale, logit_bias, matching=True)


def blocks_summed(image_features, text_features, logit_scale, logit_bias, matching):
    """The loss over the texts of the ranks in `matching`, which says of each whether its texts match."""
    texts = [torch.empty_like(text_features) for _ in range(dist.get_world_size())]
    dist.all_gather(texts, text_features)
    return sum(pair_loss(image_features, texts[c], logit_scale, logit_bias, flag) for c, flag in matching.items())


def every_rank_matches(image_features, text_features, logit_scale, logit_bias=0.0, group=None):
    matching = dict.fromkeys(range(dist.get_world_size()), True)
    return blocks_summed(image_features, text_features, logit_scale, logit_bias, matching)


def opposite_rank_missed(image_features, text_features, logit_scale, logit_bias=0.0, group=None):
    rank, size = dist.get_rank(), dist.get_world_size()
    matching = {c: c == rank for c in range(size) if c != (rank + size // 2) % size}
    return blocks_summed(image_features, text_features, logit_scale, logit_bias, matching)


def averaged_over_ranks(image_features, text_features, logit_scale, logit_bias=0.0, group=None):
    loss = solution(image_features, text_features, logit_scale, logit_bias, group)
    dist.all_reduce(loss)
    return loss / dist.get_world_size()


MUTANTS = {
    "own_texts_only": own_texts_only,
    "every_rank_matches": every_rank_matches,
    "opposite_rank_missed": opposite_rank_missed,
    "averaged_over_ranks": averaged_over_ranks,
}
