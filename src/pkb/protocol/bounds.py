"""The types of what ranks and the nursery may answer: every text, number and list in an answer has a bound."""

import math
from typing import Annotated, Any

import torch

from pkb.base.schema import AtMost, Between, Clean, OneOf, PlainTree, Product
from pkb.base.tensors import COMPARABLE

DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in COMPARABLE}
MOST_BYTES = 1 << 42
"""The most bytes of all tensors that one answer describes."""
_WORD = 1 << 63
_DAYS_S = 1e6

Name = Annotated[str, Clean(200)]
"""The name of a type, an argument, an operator or a device."""
Line = Annotated[str, Clean(2000)]
Lines = Annotated[list[Annotated[str, Clean(400)]], AtMost(64)]
Count = Annotated[int, Between(0, _WORD)]
Index = Annotated[int, Between(0, 1 << 20)]
"""The number of a world, a rank, a call or an operation."""
Calls = Annotated[int, Between(0, 1 << 14)]
"""How many calls of a block."""
Word = Annotated[int, Between(-_WORD, _WORD)]
"""A whole number of 64 bits."""
ExitCode = Annotated[int, Between(-256, 256)]
Seconds = Annotated[float, Between(0.0, _DAYS_S)]
Nanoseconds = Annotated[float, Between(1.0, 1e9 * _DAYS_S)]
"""The time of one call. Times are stored in microseconds with three decimals: one nanosecond is the least that stays
above zero there, and what divides by a time relies on that."""
DtypeName = Annotated[str, OneOf(frozenset(DTYPES))]
Shape = Annotated[list[Annotated[int, Between(0, MOST_BYTES)]], AtMost(64), Product(MOST_BYTES)]
Strides = Annotated[list[Word], AtMost(64)]
Form = Annotated[Any, PlainTree(depth=32, items=4096, length=200)]
"""The nesting of a result (`pkb.base.pytree`)."""
Facts = Annotated[dict[str, Any], PlainTree(depth=8, items=4096, length=400)]
"""Plain values by name, whose form only their reader knows."""


def count_bytes(shape: list[int] | tuple[int, ...], dtype: torch.dtype) -> int:
    return math.prod(shape) * dtype.itemsize
