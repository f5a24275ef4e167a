"""Names of the faults that `pkb lint` has ranks plant in a reference; `pkb.rank.faults` implements them."""

OUTPUT_FAULTS = ("zeros", "constant", "previous-output", "one-element", "times-world", "over-world")
"""Faults that change what a call returns."""
COMMUNICATION_FAULTS = ("no-communication", "rank-dropped", "ranks-swapped", "float8", "stale")
"""Faults that change what collectives send or receive."""
FAULTS = (*OUTPUT_FAULTS, *COMMUNICATION_FAULTS)
OTHER_ORDER = "other-order"
"""No fault: sums in another order of ranks, which must pass."""
ROUNDED_SUMS = "rounded-sums"
"""No fault: sums in another order of ranks, rounded to their dtype after every rank, which must pass."""

SKIP = "skip"
"""Leaves out one operation of a model; its number follows the name."""
STALE = "stale-argument"
"""Replaces one argument of a model by that of the first call; its position follows the name."""
NOTHING = "nothing"
"""No fault: the model as it is."""
OTHER_LIBRARY = "other-library"
"""No fault: a model computed without mkldnn and cudnn, which must pass."""
