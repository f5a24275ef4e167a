"""Convolution on the sphere with a sparse filter, the grid spread over the ranks in latitude and longitude.

Everything is float32, whatever the dtype of the run. The ranks form a grid: ranks of one azimuth group hold the same
latitudes and share out the longitudes, ranks of one polar group the other way round; a group of None is WORLD. A rank's
`psi` [K, T, H * nlon_in] holds, for its own H latitudes, the filter of each of the T output latitudes at output
longitude 0; further longitudes shift it. A dim is shared out in blocks of the rounded-up size, the last one
smaller. Every rank has a psi, weight and bias of its own: psi acts where the channel is convolved, which is on
azimuth rank a for the a-th block of channels, weight and bias where the result stays.
"""

import math

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def shares(total: int, parts: int) -> list[int]:
    """Block sizes: all but the last are equal, rounded up unless that would leave the last one empty."""
    if parts == 1:
        return [total]
    most = math.ceil(total / parts)
    if total <= most * (parts - 1):
        most = total // parts
    return [most] * (parts - 1) + [total - most * (parts - 1)]


def exchanged(
    x: torch.Tensor, cut: int, joined: int, joined_sizes: list[int], group: dist.ProcessGroup | None
) -> torch.Tensor:
    """Share dim `cut` out over the group; join what arrives along dim `joined`, where the pieces have these sizes."""
    pieces = x.split(shares(x.shape[cut], dist.get_world_size(group)), dim=cut)
    own = pieces[dist.get_rank(group)].shape
    shapes = [(*own[:joined], size, *own[joined + 1 :]) for size in joined_sizes]
    counts = [math.prod(shape) for shape in shapes]

    received = x.new_empty(sum(counts))
    sent = torch.cat([piece.reshape(-1) for piece in pieces])
    dist.all_to_all_single(received, sent, counts, [piece.numel() for piece in pieces], group=group)
    arrived = zip(received.split(counts), shapes, strict=True)
    return torch.cat([piece.view(shape) for piece, shape in arrived], dim=joined)


def convolved(x: torch.Tensor, psi: torch.Tensor, nlon_out: int) -> torch.Tensor:
    """What these latitudes contribute to the outputs: [batch, channels, K, T, nlon_out]."""
    batch, channels, _, nlon_in = x.shape
    columns = x.permute(2, 3, 0, 1)
    step = nlon_in // nlon_out
    shifted = (columns.roll(-o * step, dims=1).reshape(1, -1, batch * channels) for o in range(nlon_out))
    outputs = [torch.bmm(psi, column.repeat(psi.shape[0], 1, 1)) for column in shifted]
    return torch.stack(outputs, dim=-1).unflatten(2, (batch, channels)).permute(2, 3, 0, 1, 4)


def solution(
    x: torch.Tensor,
    psi: torch.Tensor,
    weight: torch.Tensor,
    groups: int,
    nlon_out: int,
    nlon_in: int,
    azimuth_group: dist.ProcessGroup | None = None,
    polar_group: dist.ProcessGroup | None = None,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    azimuth, polar = dist.get_world_size(azimuth_group), dist.get_world_size(polar_group)
    channels = x.shape[1]
    x = exchanged(x, cut=1, joined=3, joined_sizes=shares(nlon_in, azimuth), group=azimuth_group)
    y = convolved(x, psi, nlon_out).contiguous()

    dist.all_reduce(y, group=polar_group)
    y = y.split(shares(y.shape[3], polar), dim=3)[dist.get_rank(polar_group)]
    y = exchanged(y, cut=4, joined=1, joined_sizes=shares(channels, azimuth), group=azimuth_group)

    mix = weight.unflatten(0, (groups, -1))
    out = torch.einsum("bgckto,gmck->bgmto", y.unflatten(1, (groups, -1)), mix).flatten(1, 2)
    return out if bias is None else out + bias.view(-1, 1, 1)


PROBLEM = Problem(
    category="Geometric / Spatial",
    source="distributed discrete-continuous (DISCO) convolution of NVIDIA torch-harmonics",
    sizes={"tiny": Size(8, 16), "paper": Size(128, 256), "large": Size(720, 1440)},
    requires={"each rank holds at least one latitude and longitude": lambda case: min(case.m, case.n) >= case.world},
    deviations={
        "values": (
            "filters `psi` lie at random latitudes and longitudes, and `weight` is scaled by its fan-in; the "
            "published `psi` is the same pattern for all rows"
        ),
        "variants": (
            "later trials pose channel groups (`groups`) and odd channels in `x` and `weight`, half the longitudes "
            "(`nlon_out`), one latitude less, and no `bias`"
        ),
    },
)

KERNELS = 3
NONZEROS = 8
"""Of an output latitude's filter, on each rank, on average."""


def grid(case):
    """Polar and azimuth size, and this rank's place in each."""
    azimuth = 2 if case.world % 2 == 0 else 1
    return case.world // azimuth, azimuth, case.rank // azimuth, case.rank % azimuth


def batch(case):
    return max(1, min(32, case.m // 4))


def channels(case):
    """In and out, and the groups between which they are divided. Odd channels make uneven blocks."""
    return {2: (8, 6, 2), 3: (7, 5, 1)}.get(case.trial, (8, 8, 1))


def shape(case):
    """Input and output latitudes and longitudes, input ones rounded up to a multiple of their group."""
    polar, azimuth, _, _ = grid(case)
    nlat, nlon = -(-case.m // polar) * polar, -(-case.n // azimuth) * azimuth
    return nlat, nlon, nlat - (case.trial == 3), nlon // 2 if case.trial in (1, 2) else nlon


def draw_psi(case):
    """Filters of random latitudes and longitudes, the same on the ranks of an azimuth group."""
    polar, _, place, _ = grid(case)
    nlat, nlon, nlat_out, _ = shape(case)
    dims = KERNELS, nlat_out, nlat // polar * nlon
    count = NONZEROS * KERNELS * nlat_out
    where = case.shared.randint(0, math.prod(dims), polar, count)[place].unique()
    scale = (polar * NONZEROS) ** -0.5
    values = case.shared.randn(polar, count, scale=scale, dtype=torch.float32)[place, : where.numel()]
    # Not torch.unravel_index, which imports torch's symbolic shapes on every rank, at every judgement.
    _, rows, columns = dims
    indices = torch.stack([where // (rows * columns), where // columns % rows, where % columns])
    return torch.sparse_coo_tensor(indices, values, dims).coalesce()


def inputs(case):
    polar, azimuth, _, _ = grid(case)
    nlat, nlon, _, nlon_out = shape(case)
    c_in, c_out, groups = channels(case)
    x = case.randn(batch(case), c_in, nlat // polar, nlon // azimuth, dtype=torch.float32)
    psi = draw_psi(case)
    fan_in = c_in // groups * KERNELS
    weight = case.randn(c_out, c_in // groups, KERNELS, scale=fan_in**-0.5, dtype=torch.float32)
    bias = None if case.trial == 1 else case.randn(c_out, dtype=torch.float32)
    azimuth_group = case.subgroup([[q * azimuth + a for a in range(azimuth)] for q in range(polar)])
    polar_group = case.subgroup([[q * azimuth + a for q in range(polar)] for a in range(azimuth)])
    return x, psi, weight, groups, nlon_out, nlon, azimuth_group, polar_group, bias


def cost(case):
    polar, azimuth, polar_rank, azimuth_rank = grid(case)
    nlat, nlon, nlat_out, nlon_out = shape(case)
    c_in, c_out, groups = channels(case)
    own_c = shares(c_in, azimuth)[azimuth_rank]
    outputs = batch(case) * shares(nlat_out, polar)[polar_rank] * shares(nlon_out, azimuth)[azimuth_rank]
    places = KERNELS * nlat_out * nlat // polar * nlon
    nonzeros = places * (1 - math.exp(-NONZEROS * KERNELS * nlat_out / places))
    written = 4 * outputs * c_out
    # No more than the output must arrive. The reference sums all K kernels of all channels, and over all latitudes
    # on every rank, before it mixes them down to the output's channels.
    remote = written if case.world > 1 else 0
    return Cost(
        flops=2 * nonzeros * nlon_out * batch(case) * own_c + 2 * outputs * c_out * (c_in // groups) * KERNELS,
        hbm=4 * batch(case) * c_in * nlat // polar * nlon // azimuth + 28 * nonzeros + written,
        link=Link(egress=remote, ingress=remote),
    )


def polar_sum_skipped(x, psi, weight, groups, nlon_out, nlon_in, azimuth_group, polar_group, bias):
    rank, size = dist.get_rank(polar_group), dist.get_world_size(polar_group)
    rest = groups, nlon_out, nlon_in, azimuth_group, polar_group, bias
    return [solution(x, psi * float(rank == q), weight, *rest) for q in range(size)][rank]


def weights_taken_as_equal(x, psi, weight, groups, nlon_out, nlon_in, azimuth_group, polar_group, bias):
    first = weight.clone()
    dist.broadcast(first, dist.get_process_group_ranks(azimuth_group)[0], group=azimuth_group)
    return solution(x, psi, first, groups, nlon_out, nlon_in, azimuth_group, polar_group, bias)


def channels_out_of_order(x, psi, weight, groups, nlon_out, nlon_in, azimuth_group, polar_group, bias):
    return solution(x, psi, weight.flip(1), groups, nlon_out, nlon_in, azimuth_group, polar_group, bias)


def bias_forgotten(x, psi, weight, groups, nlon_out, nlon_in, azimuth_group, polar_group, bias):
    return solution(x, psi, weight, groups, nlon_out, nlon_in, azimuth_group, polar_group)


MUTANTS = {
    "polar_sum_skipped": polar_sum_skipped,
    "weights_taken_as_equal": weights_taken_as_equal,
    "channels_out_of_order": channels_out_of_order,
    "bias_forgotten": bias_forgotten,
}
