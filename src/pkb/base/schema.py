"""Turn dataclasses into plain JSON values, and rebuild them, checked, from what a file or another process says."""

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
_PLAIN = (float, int, str, bool, types.NoneType)


class SchemaError(ValueError):
    """A value that is not of the declared form; the message names the place."""


def dump(value: Any) -> Any:
    """Return a dataclass, or anything made of them, as dicts, lists, strings, numbers, booleans and None."""
    if type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: dump(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): dump(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [dump(one) for one in value]
    return value


def parse(kind: type[T], value: Any, place: str = "") -> T:
    """Return the value as `kind`: a dataclass, an enum, a scalar, or lists, tuples, dicts and unions of these.

    Raises SchemaError for anything else, for unknown and missing fields, and for numbers that are not finite.
    """
    return cast(T, _parse(kind, value, place))


def _parse(kind: Any, value: Any, place: str) -> Any:
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _parse_dataclass(cast(type, kind), value, place)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _parse_union(kind, value, place)
    if origin in (list, tuple):
        return _parse_sequence(kind, origin, value, place)
    if origin is not None and issubclass(origin, Mapping):
        return _parse_mapping(kind, value, place)
    return _parse_scalar(kind, value, place)


def _parse_dataclass(kind: type, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise SchemaError(f"{place or kind.__name__} is no object")
    hints = _hints(kind)
    if unknown := value.keys() - hints.keys():
        raise SchemaError(f"{place or kind.__name__} has an unknown field {min(map(str, unknown))!r}")
    known = {name: _parse(hints[name], one, f"{place}.{name}".lstrip(".")) for name, one in value.items()}
    if missing := [name for name in _list_required(kind) if name not in known]:
        raise SchemaError(f"{place or kind.__name__} has no {missing[0]!r}")
    return kind(**known)


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind)}


@cache
def _list_required(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING)


def _parse_union(kind: Any, value: Any, place: str) -> Any:
    for option in get_args(kind):
        try:
            return _parse(option, value, place)
        except SchemaError:
            continue
    raise SchemaError(f"{place} is none of {kind}")


def _parse_sequence(kind: Any, origin: Any, value: Any, place: str) -> Any:
    if not isinstance(value, list | tuple):
        raise SchemaError(f"{place} is no list")
    kinds = get_args(kind)
    if origin is tuple and kinds[-1] is not Ellipsis:
        if len(kinds) != len(value):
            raise SchemaError(f"{place} has {len(value)} items, not {len(kinds)}")
        return tuple(_parse(one, item, f"{place}[{k}]") for k, (one, item) in enumerate(zip(kinds, value, strict=True)))
    if kinds[0] is float and set(map(type, value)) == {float} and math.isfinite(sum(value)):
        # A record has thousands of raw times: naming the place of each would take most of the time.
        return origin(value)
    return origin(_parse(kinds[0], item, f"{place}[{k}]") for k, item in enumerate(value))


def _parse_mapping(kind: Any, value: Any, place: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise SchemaError(f"{place} is no object")
    key_kind, value_kind = get_args(kind)
    return {
        _parse_key(key_kind, key, place): _parse(value_kind, one, f"{place}[{key!r}]") for key, one in value.items()
    }


def _parse_key(kind: Any, key: Any, place: str) -> Any:
    """Return a key as declared: JSON knows only keys that are strings."""
    try:
        return int(key) if kind is int else _parse(kind, key, place)
    except (TypeError, ValueError):
        raise SchemaError(f"{place} has the key {key!r}") from None


def _parse_scalar(kind: Any, value: Any, place: str) -> Any:
    if kind is types.NoneType or kind is None:
        good = value is None
    elif isinstance(kind, type) and issubclass(kind, Enum):
        if value not in [one.value for one in kind]:
            raise SchemaError(f"{place} is {value!r}, not one of {', '.join(str(one.value) for one in kind)}")
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
