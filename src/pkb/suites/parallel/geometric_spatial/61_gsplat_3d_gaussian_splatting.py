"""Front end of Gaussian splatting: each rank projects its Gaussians into all cameras and sends each camera its own.

The ranks hold different numbers of Gaussians and equally many cameras; camera g of all belongs to rank g // C. Kept
are the Gaussians between the two planes whose box, `radii` around `means2d`, meets the image. A rank returns, for its
own cameras, the kept rows in the order of the source rank, then camera, then Gaussian. A Gaussian's id is its place
on the source rank plus the number of Gaussians on the ranks before the destination (the destination, not the source).
A rank may have nothing to send or to receive. Arithmetic is in the inputs' dtype.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def rotations(quats: torch.Tensor) -> torch.Tensor:
    w, x, y, z = F.normalize(quats, dim=-1).unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def covariances(quats: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    axes = rotations(quats) * scales.unsqueeze(-2)
    return axes @ axes.mT


def jacobians(p: torch.Tensor, Ks: torch.Tensor, width: int, height: int) -> torch.Tensor:
    """Of the projection, at points that are first drawn in to a little outside the image."""
    z, zero = p[..., 2], torch.zeros_like(p[..., 2])
    rows = []
    for axis, extent in enumerate((width, height)):
        focal, centre = Ks[:, axis, axis, None], Ks[:, axis, 2, None]
        slack = 0.3 * (0.5 * extent / focal)
        low, high = -(centre / focal + slack), (extent - centre) / focal + slack
        drawn_in = z * torch.minimum(torch.maximum(p[..., axis] / z, low), high)
        row = [zero, zero, -focal * drawn_in / (z * z)]
        row[axis] = focal / z
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


def project(
    means: torch.Tensor,
    quats: torch.Tensor,
    scales: torch.Tensor,
    viewmats: torch.Tensor,
    Ks: torch.Tensor,
    width: int,
    height: int,
    eps2d: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """For each camera and Gaussian: place in the image, depth, and blurred 2x2 covariance."""
    A, b = viewmats[:, :3, :3], viewmats[:, :3, 3]
    p = means @ A.mT + b.unsqueeze(1)
    A = A.unsqueeze(1)
    in_camera = A @ covariances(quats, scales) @ A.mT
    J = jacobians(p, Ks, width, height)
    blur = eps2d * torch.eye(2, dtype=p.dtype, device=p.device)
    depths = p[..., 2]
    return p @ Ks[:, :2].mT / depths.unsqueeze(-1), depths, J @ in_camera @ J.mT + blur


def box_radii(
    means2d: torch.Tensor,
    depths: torch.Tensor,
    covars: torch.Tensor,
    width: int,
    height: int,
    near_plane: float,
    far_plane: float,
) -> torch.Tensor:
    """Half the sides of each Gaussian's box, in whole pixels; zero where it is not seen."""
    radii = torch.ceil(3.33 * torch.sqrt(covars.diagonal(dim1=-2, dim2=-1)))
    seen = (depths > near_plane) & (depths < far_plane)
    for axis, extent in enumerate((width, height)):
        seen = seen & (means2d[..., axis] + radii[..., axis] > 0) & (means2d[..., axis] - radii[..., axis] < extent)
    return radii.masked_fill(~seen.unsqueeze(-1), 0).to(torch.int32)


def conics_of(covars: torch.Tensor) -> torch.Tensor:
    """The three different entries of the inverse."""
    a, b, c, d = covars.flatten(-2).unbind(-1)
    det = (a * d - b * c).clamp(min=1e-10)
    return torch.stack((d / det, -(b + c) / 2 / det, a / det), dim=-1)


def gathered(tensor: torch.Tensor) -> torch.Tensor:
    everybody = tensor.new_empty(dist.get_world_size() * tensor.shape[0], *tensor.shape[1:])
    dist.all_gather_into_tensor(everybody, tensor.contiguous())
    return everybody


def sent_out(rows: torch.Tensor, sent: list[int], received: list[int]) -> torch.Tensor:
    arrived = rows.new_empty(sum(received), *rows.shape[1:])
    dist.all_to_all_single(arrived, rows.contiguous(), received, sent)
    return arrived


def solution(
    means: torch.Tensor,
    quats: torch.Tensor,
    scales: torch.Tensor,
    opacities: torch.Tensor,
    colors: torch.Tensor,
    viewmats: torch.Tensor,
    Ks: torch.Tensor,
    image_width: int,
    image_height: int,
    eps2d: float = 0.3,
    near_plane: float = 0.01,
    far_plane: float = 1e10,
    camera_model: str = "pinhole",
) -> tuple[torch.Tensor, ...]:
    assert camera_model == "pinhole"
    own_cameras, device = viewmats.shape[0], means.device
    counts = gathered(torch.tensor([means.shape[0]], device=device))
    all_viewmats, all_Ks = gathered(viewmats), gathered(Ks)
    image = image_width, image_height

    means2d, depths, covars = project(means, quats, scales, all_viewmats, all_Ks, *image, eps2d)
    radii = box_radii(means2d, depths, covars, *image, near_plane, far_plane)
    camera, gaussian = torch.nonzero((radii > 0).all(dim=-1), as_tuple=True)
    target = camera // own_cameras

    seen = camera, gaussian
    values = means2d[seen], depths[seen].unsqueeze(1), conics_of(covars[seen]), opacities[gaussian].unsqueeze(1)
    ids = torch.stack((camera % own_cameras, gaussian + (counts.cumsum(0) - counts)[target]), dim=1)

    sent = torch.bincount(target, minlength=counts.numel())
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    splits = sent.tolist(), received.tolist()
    ids = sent_out(ids, *splits)
    radii = sent_out(radii[seen], *splits)
    packed = sent_out(torch.cat((*values, colors[gaussian]), dim=1), *splits)

    means2d, depths, conics, opacities, colors = packed.split((2, 1, 3, 1, colors.shape[1]), dim=1)
    rows = ids[:, 0], ids[:, 1], radii, means2d, depths.squeeze(1), conics, opacities.squeeze(1), colors
    return tuple(part.clone(memory_format=torch.contiguous_format) for part in rows)


PROBLEM = Problem(
    category="Geometric / Spatial",
    source="multi-GPU rasterisation of gsplat (nerfstudio), the same scheme as Grendel-GS",
    sizes={"tiny": Size(64, 100), "paper": Size(1024, 1024), "large": Size(1000000, 1024)},
    deviations={
        "dtypes": "tensors have the run's dtype; the published ones are always bfloat16",
        "sizes": (
            "two cameras on each rank, not one, and M + 7r Gaussians on rank r (`means`, `quats`, `scales`, "
            "`opacities`, `colors`), not equal numbers"
        ),
        "values": (
            "cameras look all round and have lenses of their own, so that most Gaussians are culled, each by a margin "
            "that no rounding crosses; with the published identity cameras every rank sees every Gaussian"
        ),
        "scalars": "`eps2d`, `near_plane` and `far_plane` cut some Gaussians in two trials",
        "result": "a rank that receives nothing returns empty tensors; the published code raises an error",
    },
)

CAMERAS, CHANNELS = 2, 3
VISIBLE = 0.08
"""The share of the Gaussians that a camera sees, at least."""


def shape(case):
    """This rank's Gaussians, and the image's width and height. The ranks hold different numbers."""
    width, height = (min(512, max(64, size)) for size in (case.n, case.m))
    return case.m + 7 * case.rank, width, height


def planes(case):
    """Blur, near and far plane."""
    return {1: (0.3, 0.01, 3.0), 2: (0.5, 1.2, 1e10)}.get(case.trial, (0.3, 0.01, 1e10))


def draw_cameras(case):
    """A rig of cameras that look all round, each with lenses of its own: viewmats and Ks of all ranks."""
    _, width, height = shape(case)
    count, wide = case.world * CAMERAS, torch.float32
    half_turn = case.shared.rand(count, high=3.1416, dtype=wide)
    upright = torch.stack((half_turn.cos(), 0 * half_turn, half_turn.sin(), 0 * half_turn), dim=1)
    viewmats = torch.eye(4, device=case.device).repeat(count, 1, 1)
    viewmats[:, :3, :3] = rotations(upright + case.shared.randn(count, 4, scale=0.05, dtype=wide))
    viewmats[:, :3, 3] = case.shared.rand(count, 3, low=-0.2, high=0.2, dtype=wide)
    if case.trial == 4:
        viewmats[-CAMERAS:, 2, 3] = -100  # The last rank's cameras see nothing: all is behind them.

    size = torch.tensor([width, height], device=case.device)
    Ks = torch.eye(3, device=case.device).repeat(count, 1, 1)
    focal = 0.8 * min(width, height) * case.shared.rand(count, 2, low=0.9, high=1.1, dtype=wide)
    Ks[:, :2, :2] = torch.diag_embed(focal)
    Ks[:, 0, 1] = 0.2 * focal[:, 0] * case.shared.rand(count, low=-1.0, dtype=wide)
    Ks[:, :2, 2] = 0.5 * size * case.shared.rand(count, 2, low=0.9, high=1.1, dtype=wide)
    return viewmats.to(case.dtype), Ks.to(case.dtype)


def propose(case, count):
    """Gaussians all round the rig, a few pixels large: means, quats, scales."""
    _, width, height = shape(case)
    angle = case.rand(count, high=6.2832, dtype=torch.float32)
    distance = case.rand(count, low=1.5, high=4.0, dtype=torch.float32)
    y = case.rand(count, low=-1.5, high=1.5, dtype=torch.float32)
    if case.trial == 3 and case.rank == case.world - 1:
        y = y + 100  # Far above every image: this rank sends nothing.
    means = torch.stack((distance * angle.sin(), y, distance * angle.cos()), dim=1)
    pixels = case.rand(count, low=0.4, high=1.6, dtype=torch.float32) * distance / (0.8 * min(width, height))
    scales = pixels.unsqueeze(1) * case.rand(count, 3, low=0.5, dtype=torch.float32)
    return means.to(case.dtype), case.randn(count, 4), scales.to(case.dtype)


def settled(case, gaussians, cameras):
    """Which Gaussians every kernel must keep or drop, and give whole radii, alike, whatever the order of its roundings.

    The margins are half as large again as the worst error of the reference that was seen in bfloat16.
    """
    _, width, height = shape(case)
    eps2d, near, far = planes(case)
    wide = (tensor.double() for tensor in (*gaussians, *cameras))
    means2d, depths, covars = project(*wide, width, height, eps2d)
    extents = 3.33 * covars.diagonal(dim1=-2, dim2=-1).sqrt()
    radii = extents.ceil()

    rounding = max(torch.finfo(case.dtype).eps, 2**-12)
    blurred = 6 * rounding * extents
    size = torch.tensor([width, height], device=case.device)
    inside = torch.minimum(means2d + radii, size - (means2d - radii)).amin(dim=-1)
    margin = 1 + 4 * rounding * max(width, height) + blurred.amax(dim=-1)
    ahead = (depths > near + 0.1) & (depths < far - 0.1)
    kept = ahead & (inside > margin) & ((extents - extents.round()).abs() > blurred).all(dim=-1)
    dropped = (depths < near - 0.1) | (depths > far + 0.1) | (ahead & (inside < -margin))
    return (kept | dropped).all(dim=0)


def draw_gaussians(case, cameras):
    count = shape(case)[0]
    batch, drawn = min(8 * count, 1 << 17), [[], [], []]
    while sum(map(len, drawn[0])) < count:
        gaussians = propose(case, batch)
        fine = settled(case, gaussians, cameras)
        for column, values in zip(drawn, gaussians, strict=True):
            column.append(values[fine])
    return [torch.cat(column)[:count] for column in drawn]


def inputs(case):
    count, width, height = shape(case)
    viewmats, Ks = draw_cameras(case)
    own = slice(case.rank * CAMERAS, (case.rank + 1) * CAMERAS)
    opacities = case.rand(count, low=0.1, high=0.9)
    colors = case.rand(count, CHANNELS)
    gaussians = draw_gaussians(case, (viewmats, Ks))
    return *gaussians, opacities, colors, viewmats[own], Ks[own], width, height, *planes(case)


def cost(case):
    count, _, _ = shape(case)
    cameras = case.world * CAMERAS
    everybody = sum(case.m + 7 * rank for rank in range(case.world))
    row = (7 + CHANNELS) * case.itemsize
    received = VISIBLE * CAMERAS * everybody
    # A Gaussian that two cameras of a rank see may travel once, as it is, and be projected there. The reference
    # sends a row for each, with ids and radii in 24 bytes more.
    moved = min(row, (11 + CHANNELS) * case.itemsize / CAMERAS)
    egress = VISIBLE * CAMERAS * (case.world - 1) * count * moved
    return Cost(
        # Depth and place of every Gaussian in every camera; the rest only of those that are seen. The reference
        # computes it of all, and for every camera anew.
        flops=count * cameras * (25 + 250 * VISIBLE),
        hbm=count * (11 + CHANNELS) * case.itemsize + received * (row + 24),
        link=Link(egress, ingress=VISIBLE * CAMERAS * (everybody - count) * moved),
    )


def ids_of_the_sender_alone(means, *rest):
    camera_ids, gaussian_ids, *values = solution(means, *rest)
    counts = gathered(torch.tensor([means.shape[0]], device=means.device))
    return camera_ids, gaussian_ids - counts[: dist.get_rank()].sum(), *values


def rows_in_order_of_cameras(*args):
    rows = solution(*args)
    order = rows[0].argsort(stable=True)
    return tuple(part[order] for part in rows)


def skew_forgotten(means, quats, scales, opacities, colors, viewmats, Ks, *rest):
    straight = Ks.clone()
    straight[:, 0, 1] = 0
    return solution(means, quats, scales, opacities, colors, viewmats, straight, *rest)


def blur_forgotten(*args):
    return solution(*args[:9], 0.0, *args[10:])


def far_plane_ignored(*args):
    return solution(*args[:11])


MUTANTS = {
    "ids_of_the_sender_alone": ids_of_the_sender_alone,
    "rows_in_order_of_cameras": rows_in_order_of_cameras,
    "skew_forgotten": skew_forgotten,
    "blur_forgotten": blur_forgotten,
    "far_plane_ignored": far_plane_ignored,
}
