"""Inputs and costs of the exchanges of sequence shards for head shards."""

from pkb import Cost
from pkb.problems.cost import Link

HEADS, WIDTH = 8, 64
# The order of batch, tokens and heads, by trial. The elements of a head come last.
ORDERS = ("BTH", "BTH", "BHT", "THB", "HTB")


def draw_heads(case, batch, tokens):
    """Draw heads in this trial's order of axes, and return them with the places of tokens and heads in it."""
    order = ORDERS[case.trial % 5]
    sizes = {"B": batch, "T": tokens, "H": HEADS}
    x = case.randn(*(sizes[axis] for axis in order), WIDTH)
    return x, order.index("T"), order.index("H")


def gather_sequence_cost(case, tokens, unpadded_size, features):
    """Return the cost of joining `tokens` local tokens of `features` features, cut to a size not divided by ranks."""
    kept = unpadded_size if unpadded_size % case.world else case.world * tokens
    own_kept = min(tokens, max(0, kept - case.rank * tokens))
    part = features // case.world * case.itemsize
    return Cost(
        flops=0,
        hbm=(case.world * own_kept + kept) * part,
        link=Link(egress=(case.world - 1) * own_kept * part, ingress=(kept - own_kept) * part),
    )
