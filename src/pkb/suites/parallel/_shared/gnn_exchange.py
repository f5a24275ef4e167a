"""Numbers of rows that ranks exchange in the problems on mini-batches of a graph."""


def row_counts(case, share):
    """Draw the number of rows that each rank (row) sends to each (column), `share` on average, known to all."""
    world = case.world
    counts = case.shared.randint(0, 2 * share + 1, world, world)
    match case.trial:
        case 1:
            counts *= case.shared.randint(0, 2, world, world)
        case 2:
            counts[:, -1] *= 2
        case 3:
            counts[-1] = 0
        case 4:
            counts[:, 0] = 0
    return counts


def count_rows_by_peer(case, counts):
    """Return the rows that this rank sends and receives, by peer: itself first, then the ranks after it."""
    peers = [(case.rank + step) % case.world for step in range(case.world)]
    table = counts.tolist()
    return [table[case.rank][peer] for peer in peers], [table[peer][case.rank] for peer in peers]
