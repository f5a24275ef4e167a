"""Tiled decoding of a video latent: every rank decodes and blends some of the overlapping tiles, all get the video.

Trilinear upsampling of the first three channels stands in for the decoder. A tile is decoded from the latent of the
rank that owns it, and the ranks' latents differ. Tiles are dealt out in turn, the largest latent windows first. A
tile is blended over time, height and width in this order, each time with the neighbour before it as that was
decoded, not blended. The latent and the result are bfloat16 whatever the dtype of the run; decoded tiles and both
terms of a blend are rounded to bfloat16.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from math import ceil, prod
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link

Tile = tuple[int, int, int]


class Axis(NamedTuple):
    """How one dim is cut into tiles: their latent windows, and how many pixels of each are blended and kept."""

    windows: list[slice]
    upsample: int
    blend: int
    keep: int


def cut(size: int, tile: int, overlap: float, upsample: int) -> Axis:
    stride = int(tile * (1.0 - overlap))
    if stride <= 0:
        raise ValueError(f"tiles of {tile} that overlap by {overlap} do not advance")
    blend = int(tile * upsample * overlap)
    starts = [index * stride for index in range(ceil(size / stride))]
    windows = [slice(start, min(start + tile, size)) for start in starts]
    return Axis(windows, upsample, blend, tile * upsample - blend)


def cut_video(
    z: torch.Tensor, tile: Tile, space_overlap: float, time_overlap: float, upsample: tuple[int, int, int]
) -> list[Axis]:
    overlaps = (time_overlap, space_overlap, space_overlap)
    return [cut(*dim) for dim in zip(z.shape[2:], tile, overlaps, upsample, strict=True)]


def latent_extent(axes: list[Axis], tile: Tile) -> list[int]:
    windows = [axis.windows[index] for axis, index in zip(axes, tile, strict=True)]
    return [window.stop - window.start for window in windows]


def pixel_extent(axes: list[Axis], tile: Tile) -> list[int]:
    return [size * axis.upsample for axis, size in zip(axes, latent_extent(axes, tile), strict=True)]


def kept_extent(axes: list[Axis], tile: Tile) -> list[int]:
    return [min(size, axis.keep) for axis, size in zip(axes, pixel_extent(axes, tile), strict=True)]


def deal(axes: list[Axis], world: int) -> list[list[Tile]]:
    """The tiles of each rank."""
    tiles = product(*(range(len(axis.windows)) for axis in axes))
    by_size = sorted(tiles, key=lambda tile: prod(latent_extent(axes, tile)), reverse=True)
    return [by_size[rank::world] for rank in range(world)]


def decode(z: torch.Tensor, axes: list[Axis], tile: Tile) -> torch.Tensor:
    frames, rows, columns = (axis.windows[index] for axis, index in zip(axes, tile, strict=True))
    channels = torch.arange(3, device=z.device) % z.shape[1]
    latent = z[:, channels, frames, rows, columns].to(torch.float32)
    scale = tuple(float(axis.upsample) for axis in axes)
    return F.interpolate(latent, scale_factor=scale, mode="trilinear", align_corners=False).to(torch.bfloat16)


def fade(previous: torch.Tensor, current: torch.Tensor, dim: int, extent: int) -> torch.Tensor:
    """The current tile, its beginning mixed with the end of the previous one."""
    extent = min(previous.shape[dim], current.shape[dim], extent)
    if extent == 0:
        return current
    ramp = torch.arange(extent, device=current.device, dtype=torch.float32) / extent
    ramp = ramp.view(-1, *(1,) * (current.dim() - 1 - dim))
    end = previous.narrow(dim, previous.shape[dim] - extent, extent)
    begin, rest = current.split((extent, current.shape[dim] - extent), dim)
    mixed = (end * (1 - ramp)).to(current.dtype) + (begin * ramp).to(current.dtype)
    return torch.cat((mixed, rest), dim)


def before(tile: Tile, along: int) -> Tile:
    return tuple(index - (dim == along) for dim, index in enumerate(tile))


def crop(blended: torch.Tensor, axes: list[Axis], tile: Tile) -> torch.Tensor:
    frames, rows, columns = kept_extent(axes, tile)
    return blended[:, :, :frames, :rows, :columns]


def blend(decoded: dict[Tile, torch.Tensor], axes: list[Axis], tile: Tile) -> torch.Tensor:
    blended = decoded[tile]
    for along, axis in enumerate(axes):
        if tile[along] > 0:
            blended = fade(decoded[before(tile, along)], blended, 2 + along, axis.blend)
    return crop(blended, axes, tile)


def share(
    own: list[torch.Tensor],
    dealt: list[list[Tile]],
    extent: Callable[[Tile], list[int]],
    z: torch.Tensor,
    group: dist.ProcessGroup | None,
) -> dict[Tile, torch.Tensor]:
    """The tiles of all ranks, of which `own` are this rank's. `extent` tells what a tile measures."""
    numbers = [[3 * z.shape[0] * prod(extent(tile)) for tile in of_rank] for of_rank in dealt]
    longest = max(map(sum, numbers))
    filled = torch.cat([z.new_empty(0), *(tile.flatten() for tile in own)])
    gathered = packed = F.pad(filled, (0, longest - filled.numel()))
    if len(dealt) > 1:
        gathered = packed.new_empty(len(dealt) * longest)
        dist.all_gather_into_tensor(gathered, packed, group=group)
    tiles = {}
    for row, of_rank, sizes in zip(gathered.view(-1, longest), dealt, numbers, strict=True):
        pieces = row[: sum(sizes)].split(sizes)
        tiles |= {tile: piece.view(-1, 3, *extent(tile)) for tile, piece in zip(of_rank, pieces, strict=True)}
    return tiles


def join(tiles: dict[Tile, torch.Tensor], axes: list[Axis]) -> torch.Tensor:
    frames, rows, columns = (range(len(axis.windows)) for axis in axes)
    strips = {(t, h): torch.cat([tiles[t, h, w] for w in columns], dim=4) for t in frames for h in rows}
    return torch.cat([torch.cat([strips[t, h] for h in rows], dim=3) for t in frames], dim=2)


def decode_tiles(
    z: torch.Tensor, axes: list[Axis], dealt: list[list[Tile]], rank: int, group: dist.ProcessGroup | None
) -> dict[Tile, torch.Tensor]:
    own = [decode(z, axes, tile) for tile in dealt[rank]]
    return share(own, dealt, partial(pixel_extent, axes), z, group)


def decode_video(
    z: torch.Tensor, axes: list[Axis], dealt: list[list[Tile]], rank: int, group: dist.ProcessGroup | None
) -> torch.Tensor:
    decoded = decode_tiles(z, axes, dealt, rank, group)
    own = [blend(decoded, axes, tile) for tile in dealt[rank]]
    return join(share(own, dealt, partial(kept_extent, axes), z, group), axes)


def solution(
    z: torch.Tensor,
    tile_latent_min_length: int,
    tile_latent_min_height: int,
    tile_latent_min_width: int,
    spatial_tile_overlap_factor: float,
    temporal_tile_overlap_factor: float,
    spatial_upsample: int,
    temporal_upsample: int,
    sr_ratio: int = 1,
    first_frame_as_image: bool = False,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world, rank = (dist.get_world_size(group), dist.get_rank(group)) if dist.is_initialized() else (1, 0)
    tile = (tile_latent_min_length + first_frame_as_image, tile_latent_min_height, tile_latent_min_width)
    pixels = spatial_upsample * sr_ratio
    axes = cut_video(
        z, tile, spatial_tile_overlap_factor, temporal_tile_overlap_factor, (temporal_upsample, pixels, pixels)
    )
    return decode_video(z, axes, deal(axes, world), rank, group)


PROBLEM = Problem(
    category="Geometric / Spatial",
    source="tile-parallel VAE decoding of MAGI-1 (SandAI)",
    sizes={"tiny": Size(6, 9), "paper": Size(6, 90), "large": Size(24, 180)},
    deviations={
        "variants": (
            "later trials pose other channels and one more column in `z`, other overlaps "
            "(`spatial_tile_overlap_factor`, `temporal_tile_overlap_factor`) and scales (`spatial_upsample`, "
            "`temporal_upsample`, `sr_ratio`), and `first_frame_as_image`"
        ),
    },
)


class Setting(NamedTuple):
    channels: int
    space_overlap: float
    time_overlap: float
    upsample: tuple[int, int]
    """In space and in time."""
    sr_ratio: int = 1
    first_frame: bool = False


# Of each trial; the first is the published one.
SETTINGS = [
    Setting(16, 0.25, 0.0, (8, 4)),
    Setting(4, 0.25, 0.25, (2, 2)),
    Setting(2, 0.3, 0.25, (2, 1), sr_ratio=2),
    Setting(3, 0.5, 0.4, (2, 3), first_frame=True),
    Setting(4, 0.0, 0.25, (3, 2)),
]


def shape(case):
    """Latent frames, height and width, and the extent of a tile in each."""
    width = case.n + (case.trial > 0)
    side = max(4, case.n * 32 // 90)
    return (case.m, case.n, width), (max(1, case.m // 2), side, side)


def inputs(case):
    setting = SETTINGS[case.trial % len(SETTINGS)]
    latent, tile = shape(case)
    z = case.randn(1, setting.channels, *latent, dtype=torch.bfloat16)
    overlaps = (setting.space_overlap, setting.time_overlap)
    return z, *tile, *overlaps, *setting.upsample, setting.sr_ratio, setting.first_frame


def cost(case):
    setting = SETTINGS[case.trial % len(SETTINGS)]
    latent, _ = shape(case)
    space, time = setting.upsample
    latents = prod(latent) * min(3, setting.channels)
    pixels = 3 * prod(latent) * time * (space * setting.sr_ratio) ** 2
    # The reference sends decoded pixels, and twice. The latents that they are made from are enough, each at
    # least once; then every rank interpolates (seven mixtures of two values) all pixels, or fewer and sends them.
    return Cost(
        flops=14 * pixels / case.world,
        hbm=2 * (latents / case.world + pixels),
        link=link.all_gather(2 * latents, case.world),
    )


def cut_and_deal(z, length, height, width, space_overlap, time_overlap, space_up, time_up, sr_ratio, first_frame):
    """How the arguments cut the video, and the tiles of each rank."""
    pixels = space_up * sr_ratio
    tile = (length + first_frame, height, width)
    axes = cut_video(z, tile, space_overlap, time_overlap, (time_up, pixels, pixels))
    return axes, deal(axes, dist.get_world_size())


def own_latent_for_all_tiles(z, *setting):
    axes, dealt = cut_and_deal(z, *setting)
    return decode_video(z, axes, [[tile for of_rank in dealt for tile in of_rank]], 0, None)


def tiles_dealt_in_their_order(z, *setting):
    axes, dealt = cut_and_deal(z, *setting)
    tiles = sorted(tile for of_rank in dealt for tile in of_rank)
    return decode_video(z, axes, [tiles[rank :: len(dealt)] for rank in range(len(dealt))], dist.get_rank(), None)


def seams_not_blended(z, *setting):
    axes, dealt = cut_and_deal(z, *setting)
    return decode_video(z, [axis._replace(blend=0) for axis in axes], dealt, dist.get_rank(), None)


def width_blended_first(z, *setting):
    axes, dealt = cut_and_deal(z, *setting)
    decoded = decode_tiles(z, axes, dealt, dist.get_rank(), None)
    tiles = dict(decoded)
    for tile, along in product(decoded, (2, 1, 0)):
        if tile[along] > 0:
            tiles[tile] = fade(decoded[before(tile, along)], tiles[tile], 2 + along, axes[along].blend)
    return join({tile: crop(blended, axes, tile) for tile, blended in tiles.items()}, axes)


MUTANTS = {
    "own_latent_for_all_tiles": own_latent_for_all_tiles,
    "tiles_dealt_in_their_order": tiles_dealt_in_their_order,
    "seams_not_blended": seams_not_blended,
    "width_blended_first": width_blended_first,
}
