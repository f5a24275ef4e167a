"""Shapes, inputs and costs of attention over a sequence that is spread over a ring of ranks."""

from pkb import link
from pkb.problems.cost import Link

HEADS, WIDTH, HIDDEN = 8, 64, 512


def local_shape(case, ring):
    """Return batch and local sequence length in a ring of `ring` ranks."""
    batch, tokens = max(1, case.m // 64), max(1, case.n // 64)
    return batch, max(1, tokens // ring)


def two_rings(case):
    """Return the number of rings (two if there are two ranks), ranks in each, this rank's ring and its place in it."""
    rings = min(2, case.world)
    size = case.world // rings
    return rings, size, case.rank // size, case.rank % size


def row_and_column_groups(case, rows, columns):
    """Return this rank's groups along and across the rows of a grid that ranks fill row by row."""
    row_group = case.subgroup([[r * columns + c for c in range(columns)] for r in range(rows)])
    return row_group, case.subgroup([[r * columns + c for r in range(rows)] for c in range(columns)])


def causal_at_first(case):
    return case.trial % 2 == 0


def choose_scale(case):
    return 0.2 if case.trial in (2, 3) else None


def ring_link(block, size, place, causal):
    """Return the bytes of the keys and values: all blocks of the group, or with a causal mask only the earlier ones."""
    if not causal:
        return link.all_gather(2 * size * block, size)
    return Link(egress=2 * block * (place < size - 1), ingress=2 * block * place)


def count_visible_blocks(size, place, causal):
    """Return the average number of blocks of keys that a query attends to."""
    return place + 0.5 if causal else size
