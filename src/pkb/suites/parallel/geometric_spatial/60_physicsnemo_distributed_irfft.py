"""Inverse two-dimensional real FFT of a spectrum split along its first dim; the result is split along the second.

`x` is complex64 and the result float32, whatever the dtype of the run. Every rank holds, in rank order, its rows of a
spectrum of Hh rows whose last dim, `dim[1]`, counts K of n1 frequencies; it ends with its share of the n1 columns
of the real data. Column j >= K of the whole spectrum is the complex conjugate of column n1 - j with rows i and
(Hh - i) mod Hh exchanged, or zero where there is none. Then follow complex inverse transforms, of length n1 along
dim[1] and, trimming or padding with zeros, of length n0 along dim[0]; the real part is returned. No symmetry of
`x` itself may be relied on. A group of None is WORLD.
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def gathered(x: torch.Tensor, dim: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    blocks = x.new_empty(dist.get_world_size(group), *x.shape)
    # As pairs of real numbers, since not every transport knows complex ones.
    flat = torch.view_as_real(blocks).flatten(0, 1)
    dist.all_gather_into_tensor(flat, torch.view_as_real(x), group=group)
    return torch.cat(blocks.unbind(), dim=dim)


def transposed(x: torch.Tensor, split: int, joined: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    """Cut one dim into equal blocks, block j for rank j, and join the blocks that arrive along another dim."""
    blocks = torch.stack(x.chunk(dist.get_world_size(group), dim=split))
    received = torch.empty_like(blocks)
    dist.all_to_all_single(torch.view_as_real(received), torch.view_as_real(blocks), group=group)
    return torch.cat(received.unbind(), dim=joined)


def completed(x: torch.Tensor, n1: int, row_dim: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    """This rank's rows of the spectrum, with the columns that symmetry adds to make n1."""
    given, own_rows = x.shape[-1], x.shape[row_dim]
    padded = F.pad(x, (0, n1 - given))
    mirrored_columns = n1 - torch.arange(given, n1, device=x.device)
    added = gathered(padded.index_select(-1, mirrored_columns).conj().resolve_conj(), row_dim, group)

    rows = dist.get_rank(group) * own_rows + torch.arange(own_rows, device=x.device)
    mirrored_rows = -rows % added.shape[row_dim]
    return torch.cat((x, added.index_select(row_dim, mirrored_rows)), dim=-1)


def solution(
    x: torch.Tensor,
    s: tuple[int, int],
    dim: tuple[int, int],
    norm: str = "ortho",
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    n0, n1 = s
    rows = torch.fft.ifft(completed(x, n1, dim[0], group), n=n1, dim=dim[1], norm=norm)
    columns = transposed(rows, split=dim[1], joined=dim[0], group=group)
    return torch.fft.ifft(columns, n=n0, dim=dim[0], norm=norm).real.contiguous()


PROBLEM = Problem(
    category="Geometric / Spatial",
    source="distributed inverse real FFT of NVIDIA PhysicsNeMo, at first on the 720 x 1440 grid of ERA5",
    sizes={"tiny": Size(16, 24), "paper": Size(720, 1440), "large": Size(2880, 5760)},
    requires={
        "the M rows of the spectrum are split over the ranks": lambda case: case.m % case.world == 0,
        "the N columns of the result are split over the ranks": lambda case: case.n % case.world == 0,
    },
    deviations={
        "values": "a spectrum of normal values, where the published one is that of a real grid",
        "variants": (
            "later trials pose other lengths (`s`) and numbers of frequencies in `x`, positive dims (`dim`) and every "
            "`norm`"
        ),
    },
)

BATCH, CHANNELS = 2, 10


def rows_and_frequencies(case):
    """The length n0, and how many frequencies are given: as many as there are, then fewer, more, other lengths."""
    half = case.n // 2 + 1
    match case.trial:
        case 1:
            return case.m, half - 3
        case 2:
            return case.m, half + 2
        case 3:
            return case.m + 6, half
        case 4:
            return case.m - 3, half
    return case.m, half


def inputs(case):
    n0, frequencies = rows_and_frequencies(case)
    parts = case.randn(BATCH, CHANNELS, case.m // case.world, frequencies, 2, dtype=torch.float32)
    dim = (2, 3) if case.trial == 2 else (-2, -1)
    norm = {1: "backward", 2: "forward"}.get(case.trial, "ortho")
    return torch.view_as_complex(parts), (n0, case.n), dim, norm


def cost(case):
    n0, frequencies = rows_and_frequencies(case)
    own_rows, own_columns = case.m / case.world, case.n / case.world
    images = BATCH * CHANNELS
    written = 4 * images * n0 * own_columns
    # Of its result, a rank's own rows tell nothing for certain. The reference moves complex rows, twice as much,
    # after it has gathered the mirrored columns of all rows; counting each given column twice would do instead.
    remote = written if case.world > 1 else 0
    return Cost(
        flops=2.5 * images * (own_rows * case.n * math.log2(case.n) + own_columns * n0 * math.log2(n0)),
        hbm=8 * images * own_rows * frequencies + written,
        link=Link(egress=remote, ingress=remote),
    )


def row_mirror_forgotten(x, s, dim, norm="ortho", group=None):
    n0, n1 = s
    added = F.pad(x, (0, n1 - x.shape[-1]))[..., n1 - torch.arange(x.shape[-1], n1, device=x.device)]
    rows = torch.fft.ifft(torch.cat((x, added.conj()), dim=-1), n=n1, dim=dim[1], norm=norm)
    columns = transposed(rows, dim[1], dim[0], group)
    return torch.fft.ifft(columns, n=n0, dim=dim[0], norm=norm).real.contiguous()


def symmetry_forgotten(x, s, dim, norm="ortho", group=None):
    n0, n1 = s
    rows = torch.fft.ifft(x, n=n1, dim=dim[1], norm=norm)
    columns = transposed(rows, dim[1], dim[0], group)
    return torch.fft.ifft(columns, n=n0, dim=dim[0], norm=norm).real.contiguous()


def always_orthonormal(x, s, dim, norm="ortho", group=None):
    return solution(x, s, dim, "ortho", group)


MUTANTS = {
    "row_mirror_forgotten": row_mirror_forgotten,
    "symmetry_forgotten": symmetry_forgotten,
    "always_orthonormal": always_orthonormal,
}
