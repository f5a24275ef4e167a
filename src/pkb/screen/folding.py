"""Operations on constants, done ahead of time. Only those with small results and no effects."""

import ast
import base64
import binascii
import codecs
import operator
import re
import zlib
from collections.abc import Callable
from typing import Any

LIMIT = 1 << 20
"""Longest result, in characters or elements."""

LONGEST_LOOP = 256
"""Names are short: no longer loop is worth following."""
_NUMBER_LIMIT = 1 << 64
_TEXT_METHODS = {
    *("capitalize", "casefold", "decode", "encode", "hex", "lower", "lstrip", "partition", "removeprefix"),
    *("removesuffix", "rpartition", "rsplit", "rstrip", "split", "splitlines", "strip", "swapcase", "title", "upper"),
}
_CODECS = {"ascii", "base64", "hex", "latin1", "rot13", "unicodeescape", "utf8"}
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class CannotFold(Exception):
    """The result is not known before the program runs, or too large to be worth knowing."""


def guarded(work: Callable[[], Any]) -> Any:
    """What `work` returns, if it is small and nothing goes wrong."""
    try:
        return _small(work())
    except CannotFold:
        raise
    except Exception as error:
        raise CannotFold from error


def operate(op: ast.AST, left: Any, right: Any) -> Any:
    if type(op) not in _OPERATORS:
        raise CannotFold
    if isinstance(op, ast.Mult):
        _refuse_if(size(left) * abs(right) > LIMIT if isinstance(right, int) and _sized(left) else _sized(right))
    if isinstance(op, ast.Mod) and isinstance(left, str | bytes):
        _refuse_wide(left if isinstance(left, str) else left.decode("latin1"))
    return guarded(lambda: _OPERATORS[type(op)](left, right))


def method(value: Any, name: str, args: list[Any]) -> Any:
    if isinstance(value, str | bytes):
        return _text_method(value, name, args)
    if isinstance(value, dict) and name == "get":
        return guarded(lambda: value.get(*args))
    raise CannotFold


def _text_method(value: Any, name: str, args: list[Any]) -> Any:
    if name == "join":
        _refuse_if(len(args) != 1 or len(value) * size(args[0]) > LIMIT)
    elif name == "replace":
        _refuse_if(len(args) < 2 or (len(value) + 1) * size(args[1]) > LIMIT)
    elif name == "format":
        _refuse_wide(value)
    elif name in ("encode", "decode"):
        _refuse_if(bool(args) and not _known_codec(args[0]))
    elif name not in _TEXT_METHODS:
        raise CannotFold
    return guarded(lambda: getattr(value, name)(*args))


def formatted(value: Any, conversion: int, spec: str) -> str:
    """One field of an f-string."""
    _refuse_wide(spec)
    conversions: dict[int, Callable[[Any], Any]] = {115: str, 114: repr, 97: ascii}
    shown = conversions.get(conversion, lambda same: same)
    return guarded(lambda: format(shown(value), spec))


def subscript(value: Any, index: Any) -> Any:
    return guarded(lambda: value[index])


def _inflate(data: bytes, wbits: int = zlib.MAX_WBITS) -> bytes:
    worker = zlib.decompressobj(wbits)
    text = worker.decompress(data, LIMIT)
    _refuse_if(not worker.eof)
    return text


def _transcode(step: Callable[[Any, str], Any]) -> Callable[..., Any]:
    def transcoded(data: Any, encoding: str = "utf-8") -> Any:
        _refuse_if(not _known_codec(encoding))
        return step(data, encoding)

    return transcoded


def _bytes(*args: Any) -> bytes:
    _refuse_if(bool(args) and isinstance(args[0], int))
    return bytes(*args)


def _range(*args: int) -> list[int]:
    _refuse_if(len(range(*args)) > LONGEST_LOOP)
    return list(range(*args))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "builtins.bytes": _bytes,
    "builtins.bytearray": _bytes,
    "builtins.bytes.fromhex": bytes.fromhex,
    "builtins.bytearray.fromhex": bytes.fromhex,
    "builtins.chr": chr,
    "builtins.dict": dict,
    "builtins.int": int,
    "builtins.len": len,
    "builtins.list": list,
    "builtins.ord": ord,
    "builtins.range": _range,
    "builtins.reversed": lambda values: list(reversed(values)),
    "builtins.str": str,
    "builtins.str.join": lambda glue, parts: method(glue, "join", [parts]),
    "builtins.tuple": tuple,
    "base64.a85decode": base64.a85decode,
    "base64.b16decode": base64.b16decode,
    "base64.b32decode": base64.b32decode,
    "base64.b64decode": base64.b64decode,
    "base64.b85decode": base64.b85decode,
    "base64.decodebytes": base64.decodebytes,
    "base64.standard_b64decode": base64.standard_b64decode,
    "base64.urlsafe_b64decode": base64.urlsafe_b64decode,
    "binascii.a2b_base64": binascii.a2b_base64,
    "binascii.a2b_hex": binascii.a2b_hex,
    "binascii.unhexlify": binascii.unhexlify,
    "codecs.decode": _transcode(codecs.decode),
    "codecs.encode": _transcode(codecs.encode),
    "zlib.decompress": _inflate,
}
"""Functions that are called ahead of time when all their arguments are constants."""


def call(name: str, args: list[Any]) -> Any:
    if name not in FUNCTIONS:
        raise CannotFold
    return guarded(lambda: FUNCTIONS[name](*args))


def _known_codec(name: Any) -> bool:
    return isinstance(name, str) and re.sub(r"[\s_-]", "", name.lower()) in _CODECS


def _refuse_if(too_much: bool) -> None:
    if too_much:
        raise CannotFold


def _refuse_wide(template: str) -> None:
    """A format may ask for any width: `%999999999d`, `{:>{width}}`."""
    _refuse_if(bool(re.search(r"\d{4}|\*|\{[^}]*\{", template)))


def _sized(value: Any) -> bool:
    return isinstance(value, str | bytes | list | tuple)


def size(value: Any) -> int:
    """Characters in all, and one more for every element."""
    if isinstance(value, str | bytes):
        return len(value) + 1
    if isinstance(value, list | tuple):
        return sum(map(size, value)) + 1
    return 1


def _small(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > _NUMBER_LIMIT:
        raise CannotFold
    if _sized(value) and size(value) > LIMIT:
        raise CannotFold
    return value
