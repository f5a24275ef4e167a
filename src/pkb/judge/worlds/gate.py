"""The gate: the one place where bytes of a rank or of the nursery become a value that the judge works with.

Whatever arrives is an answer of the expected class, within the bounds that its fields declare, or it is refused with
ChannelGarbled or SchemaError: no other exception, and never at a cost that the sender chooses.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor

from pkb.base.schema import SchemaError, parse
from pkb.base.tensors import COMPARABLE
from pkb.protocol import messages as m
from pkb.protocol.bounds import count_bytes
from pkb.protocol.channel import Channel, ChannelGarbled

A = TypeVar("A", bound=m.Answer)

MOST_HEADER_BYTES = 4 << 20
_MOST_PARTS = 1 << 18
"""The most commas, brackets and quotation marks of a header: each value in memory has at least one of them."""
_MOST_DEPTH = 48
_MOST_RECEIVED_BYTES = 1 << 34
"""The most bytes of tensors that follow one answer; of large tensors only excerpts are sent."""
_MOST_DIGITS, _MOST_FLOAT_DIGITS = 20, 40
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.?)*+"?|([\[{])|[\]}]', re.DOTALL)
"""A text as a whole, so that brackets in it do not count; an opening bracket as group 1; a closing one."""


def receive_header(channel: Channel, deadline: float) -> m.Header:
    """Receive the header of an answer. Raises ChannelGarbled, ChannelClosed or TimeoutError."""
    return read_header(channel.receive_frame(deadline, MOST_HEADER_BYTES))


def read_header(frame: bytes | bytearray) -> m.Header:
    """Return the JSON object in a frame, read in bounded time and memory. Raises ChannelGarbled."""
    _check_structure(frame)
    try:
        header = _DECODER.decode(frame.decode())
    except (ValueError, RecursionError) as error:
        raise ChannelGarbled("a header that is not JSON") from error
    if not isinstance(header, dict):
        raise ChannelGarbled("a header that is not an object")
    return header


def parse_answer(kind: type[A], header: m.Header, number: int | None = None) -> A | m.ErrorReport:
    """Return an answer of this class to the order with this number, or the report of an error in its place.

    Raises SchemaError for anything else.
    """
    if type(header.get(m.ORDER_NUMBER)) is bool or header.get(m.ORDER_NUMBER) != number:
        raise SchemaError("an answer to no order, or to another one")
    if is_kind(m.ErrorReport, header):
        return parse(m.ErrorReport, m.list_fields(header))
    if not is_kind(kind, header):
        raise SchemaError(f"an answer of another kind than {kind.__name__}")
    return parse(kind, m.list_fields(header))


def is_kind(kind: type[m.Answer], header: m.Header) -> bool:
    return header.get(m.KIND) == kind.__name__


def receive_tensors(
    channel: Channel, specs: Sequence[tuple[Sequence[int], torch.dtype]], deadline: float
) -> list[Tensor]:
    """Receive the tensors, by shape and dtype, that follow an answer. Raises ChannelClosed or TimeoutError."""
    # Checked when the answer was parsed; but a tensor of another dtype, made from raw bytes, would crash this process.
    if not all(dtype in COMPARABLE and min(shape, default=0) >= 0 for shape, dtype in specs):
        raise SchemaError("tensors that cannot be made from bytes")
    if sum(count_bytes(tuple(shape), dtype) for shape, dtype in specs) > _MOST_RECEIVED_BYTES:
        raise SchemaError("tensors that are too large together")
    return [channel.receive_tensor(shape, dtype, deadline) for shape, dtype in specs]


def _check_structure(frame: bytes | bytearray) -> None:
    """Refuse a header with too many parts or levels, before any value is made of it."""
    if len(frame) > MOST_HEADER_BYTES or sum(frame.count(mark) for mark in b'[{,:"') > _MOST_PARTS:
        raise ChannelGarbled("a header of too many parts")
    depth = 0
    for found in _BRACKETS.finditer(frame):
        if found[0][:1] != b'"':
            depth += 1 if found[1] else -1
            if depth > _MOST_DEPTH:
                raise ChannelGarbled("a header of too many levels")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def _read_whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError("a number of too many digits")
    return int(digits)


def _read_float(digits: str) -> float:
    if len(digits) > _MOST_FLOAT_DIGITS or not math.isfinite(value := float(digits)):
        raise ValueError("a number of too many digits, or that no float can hold")
    return value


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object with two fields of one name")
    return made


_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_int=_read_whole, parse_float=_read_float, object_pairs_hook=_make_object
)
