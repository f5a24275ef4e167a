"""Orthogonalisation of a sharded matrix by Newton-Schulz iteration, the heart of the Muon optimizer.

The matrix is split along `partition_dim`; the Gram matrix that the iteration needs has the size of the other
dim, whichever of the two is larger. All arithmetic is in float32 (not TF32). x is bfloat16 whatever the dtype of
the run. Singular values that start small do not reach 1: the exact polar factor is another matrix.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link

COEFFICIENTS = {
    "simple": [(3.4445, -4.7750, 2.0315)],
    "quintic": [
        (4.0848, -6.8946, 2.9270),
        (3.9505, -6.3029, 2.6377),
        (3.7418, -5.5913, 2.3037),
        (2.8769, -3.1427, 1.2046),
        (2.8366, -3.0525, 1.2012),
    ],
    "polar_express": [
        (8.2051, -22.9019, 16.4607),
        (4.0664, -2.8612, 0.5184),
        (3.9096, -2.8234, 0.5250),
        (3.2856, -2.4647, 0.5074),
        (2.2779, -1.6447, 0.4162),
        (1.8726, -1.2307, 0.3585),
        (1.8564, -1.2132, 0.3568),
        (1.8750, -1.2500, 0.3750),
    ],
    "aol": [
        (4.0098, -7.0585, 2.4635),
        (3.4585, -5.5479, 2.5959),
        (2.7573, -3.2939, 1.4254),
        (2.7215, -3.0494, 1.3169),
    ],
}


def solution(
    x: torch.Tensor,
    steps: int = 5,
    coefficient_type: str = "quintic",
    partition_dim: int = 1,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    assert x.dim() == 2
    assert partition_dim in (0, 1)
    assert coefficient_type in COEFFICIENTS
    table = COEFFICIENTS[coefficient_type]
    assert steps % len(table) == 0

    X = x.to(torch.float32)
    X = X if partition_dim == 1 else X.T.contiguous()
    squares = X.square().sum()
    dist.all_reduce(squares, group=group)
    X = X / squares.sqrt().clamp(min=1e-7)
    for step in range(steps):
        a, b, c = table[step % len(table)]
        G = X @ X.T
        dist.all_reduce(G, group=group)
        X = a * X + (b * G + c * (G @ G)) @ X
    return (X if partition_dim == 1 else X.T).to(x.dtype).contiguous()


PROBLEM = Problem(
    category="Tensor Parallel",
    source="Muon with distributed Newton-Schulz (Megatron-LM, NVIDIA Emerging-Optimizers)",
    sizes={"tiny": Size(24, 40), "paper": Size(512, 512), "large": Size(8192, 28672)},
    deviations={
        "values": (
            "ranks differ in scale, so that no rank's own norm is a stand-in for all; once so small that the floor "
            "under the norm decides"
        ),
        "variants": (
            "later trials pose other `steps`, every `coefficient_type`, and `x` cut by rows (`partition_dim` 0)"
        ),
    },
)

# Steps, table and split dim of each trial; the first is the published one.
SETTINGS = [
    (5, "quintic", 1),
    (10, "quintic", 0),
    (8, "polar_express", 1),
    (4, "aol", 0),
    (5, "simple", 1),
]


def shape(case):
    """The unsplit dim, and this rank's part of the split one."""
    return case.m, -(-case.n // case.world)


def inputs(case):
    rows, columns = shape(case)
    steps, coefficient_type, partition_dim = SETTINGS[case.trial % len(SETTINGS)]
    # Ranks differ in scale, so that no rank's own norm or Gram matrix can stand for all. One trial is so
    # small that the floor under the norm decides.
    scale = (0.5 + case.rank % 3) * (2e-8 * (case.m * case.n) ** -0.5 if case.trial == 3 else 0.02)
    size = (rows, columns) if partition_dim == 1 else (columns, rows)
    return case.randn(*size, scale=scale, dtype=torch.bfloat16), steps, coefficient_type, partition_dim


def cost(case):
    rows, columns = shape(case)
    steps, *_ = SETTINGS[case.trial % len(SETTINGS)]
    apply, square = 2 * rows**2 * columns, rows**3 / case.world
    # Symmetric products need half. Either every step makes a Gram matrix, squares it and applies the result,
    # or one Gram matrix is iterated alone (four symmetric products a step) and applied once.
    flops = min(steps * (1.5 * apply + square), 1.5 * apply + steps * 4 * square)
    # The reference reduces a full Gram matrix at every step. One triangle is enough, or x gathered once.
    ways = (
        link.all_reduce(4 * rows * (rows + 1) / 2, case.world),
        link.all_gather(2 * rows * columns * case.world, case.world),
    )
    return Cost(flops=flops, hbm=4 * rows * columns, link=link.take_least(*ways))


def shards_scaled_by_their_own_norm(x, *setting):
    return solution(x / x.norm(), *setting)


def exact_polar_factor(x, steps=5, coefficient_type="quintic", partition_dim=1, group=None):
    X = x.to(torch.float32) if partition_dim == 1 else x.to(torch.float32).T
    G = X @ X.T
    dist.all_reduce(G, group=group)
    values, vectors = torch.linalg.eigh(G)
    X = vectors * values.clamp(min=1e-30).rsqrt() @ vectors.T @ X
    return (X if partition_dim == 1 else X.T).to(x.dtype).contiguous()


def one_table_for_all_types(x, steps=5, coefficient_type="quintic", partition_dim=1, group=None):
    return solution(x, 5, "quintic", partition_dim, group)


def always_split_by_columns(x, steps=5, coefficient_type="quintic", partition_dim=1, group=None):
    return solution(x, steps, coefficient_type, 1, group)


MUTANTS = {
    "shards_scaled_by_their_own_norm": shards_scaled_by_their_own_norm,
    "exact_polar_factor": exact_polar_factor,
    "one_table_for_all_types": one_table_for_all_types,
    "always_split_by_columns": always_split_by_columns,
}
