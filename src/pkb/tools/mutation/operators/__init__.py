"""Operators of change: one module each, with an OPERATOR. A new one needs only its file."""

from functools import cache

from pkb.base.plugins import load_objects
from pkb.tools.mutation.change import Operator


@cache
def list_operators() -> tuple[Operator, ...]:
    """Return all operators, in the order of their modules' names."""
    return tuple(load_objects(__name__, __path__, "OPERATOR").values())
