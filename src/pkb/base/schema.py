"""Turn dataclasses into plain JSON values, and rebuild them, checked, from what a file or another process says.

A field's bounds are declared with its type: `Annotated[int, Between(0, 9)]`. `parse` refuses what lies outside.
"""

import math
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pkb.base.printable import clean_line

T = TypeVar("T")
_PLAIN = (float, int, str, bool, types.NoneType)
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class SchemaError(ValueError):
    """A value that is not of the declared form; the message names the place."""


class Bound:
    """What a value must satisfy besides its type; `Annotated` names it."""

    def admit(self, value: Any, place: str) -> None:
        """Refuse a raw value before any of its parts is looked at. Raises SchemaError."""

    def settle(self, value: Any, place: str) -> Any:
        """Return the parsed value, checked or cleaned. Raises SchemaError."""
        return value


@dataclass(frozen=True)
class Between(Bound):
    """A number that is neither below `low` nor above `high`."""

    low: float
    high: float

    def settle(self, value: Any, place: str) -> Any:
        if not self.low <= value <= self.high:
            raise SchemaError(f"{place} is not between {self.low:g} and {self.high:g}")
        return value


@dataclass(frozen=True)
class AtMost(Bound):
    """A list or an object of at most `items` items."""

    items: int

    def admit(self, value: Any, place: str) -> None:
        if isinstance(value, list | tuple | dict) and len(value) > self.items:
            raise SchemaError(f"{place} has {len(value)} items, more than {self.items}")


@dataclass(frozen=True)
class Clean(Bound):
    """One printable line of at most `length` characters: what is not printable is replaced, what is longer is cut."""

    length: int

    def settle(self, value: Any, place: str) -> Any:
        return clean_line(value, self.length)


@dataclass(frozen=True)
class OneOf(Bound):
    """One of a few values."""

    values: frozenset[Any]

    def settle(self, value: Any, place: str) -> Any:
        if value not in self.values:
            raise SchemaError(f"{place} is none of the {len(self.values)} values that are allowed")
        return value


@dataclass(frozen=True)
class Product(Bound):
    """A list of sizes whose product, zeros left out, is at most `most`."""

    most: int

    def settle(self, value: Any, place: str) -> Any:
        if math.prod(max(size, 1) for size in value) > self.most:
            raise SchemaError(f"{place} has a product above {self.most}")
        return value


@dataclass(frozen=True)
class PlainTree(Bound):
    """Any JSON value: at most `depth` levels and `items` parts in all; its texts are cleaned, its numbers finite."""

    depth: int
    items: int
    length: int
    """The most characters of a text or of a key."""
    most: int = 1 << 63
    """The largest whole number, either way."""

    def settle(self, value: Any, place: str) -> Any:
        return self._copy(value, place, self.depth, [self.items])

    def _copy(self, value: Any, place: str, depth: int, left: list[int]) -> Any:
        """Return a clean copy; `left` holds how many parts there may still be."""
        left[0] -= 1
        if depth < 0 or left[0] < 0:
            raise SchemaError(f"{place} has more than {self.depth} levels or {self.items} parts")
        if isinstance(value, list):
            return [self._copy(one, place, depth - 1, left) for one in value]
        if isinstance(value, dict):
            return self._copy_object(value, place, depth, left)
        if isinstance(value, str):
            return clean_line(value, self.length)
        return self._check_number(value, place)

    def _copy_object(self, value: dict[str, Any], place: str, depth: int, left: list[int]) -> dict[str, Any]:
        copy = {clean_line(key, self.length): self._copy(one, place, depth - 1, left) for key, one in value.items()}
        if len(copy) != len(value):
            raise SchemaError(f"{place} has keys that look alike")
        return copy

    def _check_number(self, value: Any, place: str) -> Any:
        if value is not None and not isinstance(value, int | float):
            raise SchemaError(f"{place} holds something that is no JSON value")
        if (isinstance(value, int) and abs(value) > self.most) or (isinstance(value, float) and not _is_finite(value)):
            raise SchemaError(f"{place} holds a number that is out of range")
        return value


def dump(value: Any) -> Any:
    """Return a dataclass, or anything made of them, as dicts, lists, strings, numbers, booleans and None."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if (names := _list_names(kind)) is not None:
        return {name: dump(getattr(value, name)) for name in names}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): dump(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [dump(one) for one in value]
    return value


def parse(kind: type[T], value: Any, place: str = "") -> T:
    """Return the value as `kind`: a dataclass, an enum, a scalar, or lists, tuples, dicts and unions of these.

    Raises SchemaError for anything else, for unknown and missing fields, for numbers that are not finite, for what is
    out of the declared bounds, and for what a dataclass refuses with a ValueError when it is made.
    """
    return cast(T, _make_parser(kind)(value, place))


Parser = Callable[[Any, str], Any]
"""Returns a value as declared, or raises SchemaError, which names the place of the value."""


def _make_parser(kind: Any) -> Parser:
    """Return the parser of values of this kind. A dataclass keeps those of its fields: types are slow to look into."""
    if kind is Any:
        return lambda value, place: value
    if is_dataclass(kind):
        return partial(_parse_dataclass, cast(type, kind))
    origin = get_origin(kind)
    if origin is Annotated:
        plain, *bounds = get_args(kind)
        return partial(_parse_bounded, _make_parser(plain), [bound for bound in bounds if isinstance(bound, Bound)])
    if origin in (Union, types.UnionType):
        return partial(_parse_union, kind, [(option, _make_parser(option)) for option in get_args(kind)])
    if origin in (list, tuple):
        return _make_sequence_parser(origin, get_args(kind))
    if origin is not None and issubclass(origin, Mapping):
        key_kind, value_kind = get_args(kind)
        return partial(_parse_mapping, _KeyParser.of(key_kind), _make_parser(value_kind))
    return partial(_parse_scalar, kind)


def _parse_dataclass(kind: type, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise SchemaError(f"{place or kind.__name__} is no object")
    parsers = _make_field_parsers(kind)
    if unknown := value.keys() - parsers.keys():
        raise SchemaError(f"{place or kind.__name__} has an unknown field {_quote(min(map(str, unknown)))}")
    inside = f"{place}." if place else ""
    known = {name: parsers[name](one, inside + name) for name, one in value.items()}
    if missing := [name for name in _list_required(kind) if name not in known]:
        raise SchemaError(f"{place or kind.__name__} has no {missing[0]!r}")
    try:
        return kind(**known)
    except SchemaError:
        raise
    except ValueError as error:
        raise SchemaError(f"{place or kind.__name__}: {error}") from error


def _parse_bounded(parse_plain: Parser, bounds: list[Bound], value: Any, place: str) -> Any:
    for bound in bounds:
        bound.admit(value, place)
    parsed = parse_plain(value, place)
    for bound in bounds:
        parsed = bound.settle(parsed, place)
    return parsed


def _quote(text: Any) -> str:
    """Return a key or a value as a message shows it: a stranger may have written it."""
    if isinstance(text, str):
        return repr(clean_line(text, 80))
    return repr(text) if isinstance(text, int | float) else f"a {type(text).__name__}"


@cache
def _make_field_parsers(kind: type) -> dict[str, Parser]:
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: _make_parser(hints[one.name]) for one in fields(kind)}


@cache
def _list_names(kind: Any) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields; None for any other type."""
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else None


@cache
def _list_required(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING)


def _parse_union(kind: Any, options: list[tuple[Any, Parser]], value: Any, place: str) -> Any:
    parsers = [parser for option, parser in options if option is not types.NoneType or value is None]
    if len(parsers) == 1:
        # Its own error says which field of it is wrong.
        return parsers[0](value, place)
    for parser in parsers:
        try:
            return parser(value, place)
        except SchemaError:
            continue
    raise SchemaError(f"{place} is none of {kind}")


def _make_sequence_parser(origin: Any, kinds: tuple[Any, ...]) -> Parser:
    if origin is tuple and kinds[-1] is not Ellipsis:
        return partial(_parse_tuple, [_make_parser(kind) for kind in kinds])
    return partial(_parse_sequence, origin, _Numbers.of(kinds[0]), _make_parser(kinds[0]))


def _parse_tuple(parsers: list[Parser], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise SchemaError(f"{place} is no list")
    if len(parsers) != len(value):
        raise SchemaError(f"{place} has {len(value)} items, not {len(parsers)}")
    return tuple(parser(item, f"{place}[{k}]") for k, (parser, item) in enumerate(zip(parsers, value, strict=True)))


def _parse_sequence(origin: Any, numbers: "_Numbers | None", parse_item: Parser, value: Any, place: str) -> Any:
    if not isinstance(value, list | tuple):
        raise SchemaError(f"{place} is no list")
    if numbers and numbers.hold(value):
        # A record has thousands of raw times: naming the place of each would take most of the time.
        return origin(value)
    return origin(parse_item(item, f"{place}[{k}]") for k, item in enumerate(value))


@dataclass(frozen=True)
class _Numbers:
    """Numbers of one kind that can be checked all at once."""

    kind: type
    bounds: list[Between]

    @classmethod
    def of(cls, kind: Any) -> "_Numbers | None":
        """Return what numbers of this kind must satisfy; None where that is hard to tell."""
        plain, *bounds = get_args(kind) if get_origin(kind) is Annotated else (kind,)
        return cls(plain, bounds) if plain in (int, float) and all(isinstance(one, Between) for one in bounds) else None

    def hold(self, values: list[Any] | tuple[Any, ...]) -> bool:
        """Return whether all are finite numbers of this kind within the bounds."""
        if set(map(type, values)) != {self.kind} or (self.kind is float and not math.isfinite(sum(values))):
            return False
        return all(bound.low <= min(values) and max(values) <= bound.high for bound in self.bounds)


def _parse_mapping(key: "_KeyParser", parse_value: Parser, value: Any, place: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise SchemaError(f"{place} is no object")
    parsed = {key.parse(name, place): parse_value(one, f"{place}[{_quote(name)}]") for name, one in value.items()}
    if len(parsed) != len(value):
        raise SchemaError(f"{place} has keys that look alike")
    return parsed


@dataclass(frozen=True)
class _KeyParser:
    is_whole: bool
    parse_plain: Parser

    @classmethod
    def of(cls, kind: Any) -> "_KeyParser":
        return cls(kind is int or get_args(kind)[:1] == (int,), _make_parser(kind))

    def parse(self, key: Any, place: str) -> Any:
        """Return a key as declared: JSON knows only keys that are strings."""
        try:
            if self.is_whole and isinstance(key, str) and _WHOLE.fullmatch(key):
                return self.parse_plain(int(key), place)
            return self.parse_plain(key, place)
        except SchemaError:
            raise SchemaError(f"{place} has the key {_quote(key)}") from None


def _parse_scalar(kind: Any, value: Any, place: str) -> Any:
    if kind is types.NoneType or kind is None:
        good = value is None
    elif isinstance(kind, type) and issubclass(kind, Enum):
        if value not in [one.value for one in kind]:
            raise SchemaError(f"{place} is {_quote(value)}, not one of {', '.join(str(one.value) for one in kind)}")
        return kind(value)
    elif kind is float:
        good = isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)
    elif kind is int:
        good = isinstance(value, int) and not isinstance(value, bool)
    elif kind in (bool, str, dict, list):
        good = isinstance(value, kind)
    else:
        raise TypeError(f"no rule for {kind}")
    if not good:
        raise SchemaError(f"{place} is no {getattr(kind, '__name__', kind)}")
    return float(value) if kind is float else value


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        # An integer that no float can hold.
        return False
