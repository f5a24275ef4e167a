"""Two-dimensional FFT of real data that is split along the second transformed dim; the result is split along the first.

`x` is float32 and the result complex64, whatever the dtype of the run. Every rank holds all of dim `dim[0]` and, in
rank order, its share of `dim[1]`. The result is this rank's block of rows of rfft2(whole x, s, dim, norm). A dim
is trimmed or padded with zeros to its entry of `s`, where None stands for the whole dim as it is. Dims may be
negative, and other dims may stand before or between them. A group of None is WORLD.
"""

import math

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def transposed(x: torch.Tensor, split: int, joined: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    """Cut one dim into equal blocks, block j for rank j, and join the blocks that arrive along another dim."""
    blocks = torch.stack(x.chunk(dist.get_world_size(group), dim=split))
    received = torch.empty_like(blocks)
    # As pairs of real numbers, since not every transport knows complex ones.
    dist.all_to_all_single(torch.view_as_real(received), torch.view_as_real(blocks), group=group)
    return torch.cat(received.unbind(), dim=joined)


def solution(
    x: torch.Tensor,
    s: tuple[int | None, int | None],
    dim: tuple[int, int],
    norm: str = "ortho",
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    columns = torch.fft.fft(x, n=s[0], dim=dim[0], norm=norm)
    rows = transposed(columns, split=dim[0], joined=dim[1], group=group)
    spectrum = torch.fft.fft(rows, n=s[1], dim=dim[1], norm=norm)
    half = spectrum.shape[dim[1]] // 2 + 1
    return spectrum.narrow(dim[1], 0, half).contiguous()


PROBLEM = Problem(
    category="Geometric / Spatial",
    source="distributed real FFT of NVIDIA PhysicsNeMo (FourCastNet and AFNO model parallelism)",
    sizes={"tiny": Size(128, 48), "paper": Size(1024, 1024), "large": Size(4096, 8192)},
    deviations={
        "variants": (
            "later trials pose other lengths (`s`, longer, shorter, None), negative dims (`dim`), every `norm`, and "
            "an `x` of four dims"
        ),
    },
)


def shape(case):
    """Batch, and the whole grid's height and width, both rounded up to a multiple of the world size."""
    up = lambda size: -(-max(16, size) // case.world) * case.world  # noqa: E731
    return max(1, case.m // 64), up(case.m), up(case.n)


def lengths(case):
    """The lengths of both transforms: those of the data, longer ones, shorter ones."""
    _, height, width = shape(case)
    match case.trial:
        case 2:
            return height + 2 * case.world, width + 5
        case 3:
            return height - case.world, width - 3
    return height, width


def inputs(case):
    batch, height, width = shape(case)
    x = case.randn(batch, height, width // case.world, dtype=torch.float32)
    match case.trial:
        case 1:
            return x, (None, None), (-2, -1), "backward"
        case 2:
            return x, lengths(case), (1, 2), "forward"
        case 4:
            return x.unsqueeze(1), (height, None), (-2, -1), "forward"
    return x, lengths(case), (1, 2), "ortho"


def cost(case):
    batch, height, width = shape(case)
    n0, n1 = lengths(case)
    own_width, own_rows, half = width / case.world, n0 / case.world, n1 // 2 + 1
    written = 8 * batch * own_rows * half
    # All remote columns of the own rows, as the reference sends them, or half spectra that others have summed.
    remote = min(8 * batch * own_rows * (width - own_width), written if case.world > 1 else 0)
    return Cost(
        flops=2.5 * batch * (own_width * n0 * math.log2(n0) + own_rows * n1 * math.log2(n1)),
        hbm=4 * batch * height * own_width + written,
        link=Link(egress=remote, ingress=remote),
    )


def sign_flipped(x, s, dim, norm="ortho", group=None):
    return solution(x, s, dim, norm, group).conj().resolve_conj()


def norm_of_one_transform(x, s, dim, norm="ortho", group=None):
    rows = transposed(torch.fft.fft(x, n=s[0], dim=dim[0]), dim[0], dim[1], group)
    spectrum = torch.fft.fft(rows, n=s[1], dim=dim[1], norm=norm)
    return spectrum.narrow(dim[1], 0, spectrum.shape[dim[1]] // 2 + 1).contiguous()


def sources_in_reverse(x, s, dim, norm="ortho", group=None):
    columns = torch.fft.fft(x, n=s[0], dim=dim[0], norm=norm)
    blocks = transposed(columns, dim[0], dim[1], group).chunk(dist.get_world_size(group), dim=dim[1])
    spectrum = torch.fft.fft(torch.cat(blocks[::-1], dim=dim[1]), n=s[1], dim=dim[1], norm=norm)
    return spectrum.narrow(dim[1], 0, spectrum.shape[dim[1]] // 2 + 1).contiguous()


MUTANTS = {
    "sign_flipped": sign_flipped,
    "norm_of_one_transform": norm_of_one_transform,
    "sources_in_reverse": sources_in_reverse,
}
