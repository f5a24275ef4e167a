"""How 16-bit floats of several ranks are added up while a reference runs."""

from enum import StrEnum


class Sums(StrEnum):
    NATIVE = "native"
    """By the platform's own collectives."""
    ONCE = "once"
    """In float32, rounded once: no platform does it more precisely."""
    STEPWISE = "stepwise"
    """Rounded after every rank, as NCCL's ring does: no platform does it less precisely."""
