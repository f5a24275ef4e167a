"""Gathers the object masks of all ranks and blanks one of every two that overlap too much.

An object's mask is where its logits are positive. Of two objects whose masks overlap by `iou_threshold` or more,
the one that was occluded later is suppressed (the other one with `reverse`), unless the object that would be kept
was never occluded (-1); objects last occluded at the same time are both kept. All pairs are judged at once, suppressed
objects included. Ranks hold different numbers of objects, perhaps none. Results are float32.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link

NO_OBJECT = -10.0


def gather_objects(local: torch.Tensor, counts: list[int], group: dist.ProcessGroup | None) -> torch.Tensor:
    rows = max(counts)
    padding = (0, 0) * (local.dim() - 1) + (0, rows - local.shape[0])
    padded = F.pad(local, padding)
    gathered = padded.new_empty(len(counts) * rows, *padded.shape[1:])
    dist.all_gather_into_tensor(gathered, padded, group=group)
    return torch.cat([gathered[r * rows : r * rows + count] for r, count in enumerate(counts)])


def overlaps(masks: torch.Tensor) -> torch.Tensor:
    """Intersection over union of every two masks."""
    inside = (masks > 0).flatten(1).to(torch.float32)
    area = inside.sum(dim=1)
    common = inside @ inside.T
    return common / (area[:, None] + area[None, :] - common).clamp(min=1)


def suppression(masks: torch.Tensor, last_occluded: torch.Tensor, iou_threshold: float, reverse: bool) -> torch.Tensor:
    other = last_occluded[None, :]
    loses = last_occluded[:, None] < other if reverse else last_occluded[:, None] > other
    return ((overlaps(masks) >= iou_threshold) & loses & (other > -1)).any(dim=1)


def solution(
    low_res_masks_local: torch.Tensor,
    obj_scores_local: torch.Tensor,
    num_obj_per_gpu: list[int],
    last_occluded: torch.Tensor,
    iou_threshold: float = 0.7,
    reverse: bool = False,
    group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    expected = num_obj_per_gpu[dist.get_rank(group)]
    if low_res_masks_local.shape[0] != expected:
        raise ValueError(f"this rank holds {low_res_masks_local.shape[0]} objects, num_obj_per_gpu says {expected}")
    masks = gather_objects(low_res_masks_local.to(torch.float32), num_obj_per_gpu, group)
    scores = gather_objects(obj_scores_local.to(torch.float32), num_obj_per_gpu, group)
    suppressed = suppression(masks, last_occluded, iou_threshold, reverse)
    masks[suppressed] = NO_OBJECT
    return masks, scores, suppressed


PROBLEM = Problem(
    category="Data Parallel",
    source="multi-GPU video tracking of SAM 3, suppression of overlapping masklets by recent occlusion",
    sizes={"tiny": Size(16, 2), "paper": Size(256, 2), "large": Size(288, 64)},
    exact=True,
    deviations={
        "values": (
            "masks are copies of a few shapes that overlap by more or less than the threshold, by a margin, and "
            "scores (`obj_scores_local`) and `last_occluded` are random; published masks never overlap enough for one "
            "to be suppressed"
        ),
        "variants": (
            "counts (`num_obj_per_gpu`, `low_res_masks_local`) follow the trial, as published, and once every other "
            "rank has none; `reverse` is True in every other trial"
        ),
    },
)


def object_counts(case):
    if case.trial == 3:
        return [0 if rank % 2 else case.n + 1 for rank in range(case.world)]
    return [case.n - 1 + (rank + case.trial) % 3 for rank in range(case.world)]


def positive_regions(case, count):
    """Boolean masks [count, pixels], the same on all ranks, whose overlaps keep away from the threshold.

    Objects are copies of a few shapes, each of half the pixels. A copy swaps as many pixels out as in, so that
    two copies that differ in d of P pixels overlap by (P - d) / (P + d): above 0.85 for two close copies, below
    0.67 for a close and a loose one, about a third for different shapes.
    """
    shared, pixels, half = case.shared, case.m**2, case.m**2 // 2
    shapes = max(1, count // 3)
    # Of a shape's pixels in random order the first half are inside; a copy swaps some, anywhere in both halves.
    order = torch.stack([shared.randperm(pixels) for _ in range(shapes)])
    swapped = torch.where(shared.randint(0, 4, count) == 0, pixels * 12 // 100, pixels * 2 // 100)
    regions = torch.zeros(count, pixels, dtype=torch.bool, device=case.device)
    for region, shape, swaps in zip(regions, shared.randint(0, shapes, count).tolist(), swapped.tolist(), strict=True):
        chosen = shared.randperm(half)[:swaps]
        region[order[shape, :half]] = True
        region[order[shape, chosen]] = False
        region[order[shape, half + chosen]] = True
    return regions


def inputs(case):
    counts = object_counts(case)
    first, own = sum(counts[: case.rank]), counts[case.rank]
    inside = positive_regions(case, sum(counts))[first : first + own].view(own, case.m, case.m)
    # Outside a mask the logit may be exactly 0, which is not positive.
    size = case.randn(own, case.m, case.m, dtype=torch.float32)
    logits = torch.where(inside, size.abs() + 0.125, -size.clamp(min=0)).to(case.dtype)
    last_occluded = case.shared.randint(-1, 3, sum(counts))
    return logits, case.randn(own, scale=3.0), counts, last_occluded, 0.7, case.trial % 2 == 1


def cost(case):
    counts, pixels, s = object_counts(case), case.m**2, case.itemsize
    total, own = sum(counts), counts[case.rank]
    # The reference sends float32 padded to the largest count; the masks as they came are enough. It also compares
    # all pairs, both ways round, on every rank.
    return Cost(
        flops=total * (total - 1) * pixels / case.world,
        hbm=own * (pixels + 1) * s + 4 * total * (pixels + 1),
        link=link.all_gather_uneven(own * (pixels + 1) * s, total * (pixels + 1) * s, case.world),
    )


def nothing_suppressed(masks, scores, counts, last_occluded, *rest):
    return solution(masks, scores, counts, torch.full_like(last_occluded, -1), *rest)


def never_occluded_counts_as_oldest(masks, scores, counts, last_occluded, *rest):
    return solution(masks, scores, counts, last_occluded + 1, *rest)


def reverse_ignored(masks, scores, counts, last_occluded, iou_threshold=0.7, reverse=False, group=None):
    return solution(masks, scores, counts, last_occluded, iou_threshold, False, group)


def overlap_not_asked(masks, scores, counts, last_occluded, iou_threshold=0.7, reverse=False, group=None):
    return solution(masks, scores, counts, last_occluded, 0.0, reverse, group)


MUTANTS = {
    "nothing_suppressed": nothing_suppressed,
    "never_occluded_counts_as_oldest": never_occluded_counts_as_oldest,
    "reverse_ignored": reverse_ignored,
    "overlap_not_asked": overlap_not_asked,
}
