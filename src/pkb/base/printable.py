"""Text that others wrote, made safe to print: it cannot steer a terminal, hide, turn around, or begin a new line."""

import re
import unicodedata
from dataclasses import fields
from typing import Any

LINE, TEXT = 4000, 64 << 10
"""The most characters of a line, and of a text of several lines."""
_SUBSTITUTE = "?"
_CUT = "..."
_MARKS = ("Mn", "Me")
"""Characters that are drawn over the one before them."""
_RIGHT_TO_LEFT = ("R", "AL", "AN")
"""Characters that turn the order of what stands around them."""
_BLANKS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that show nothing."""


def clean_line(text: str, length: int = LINE) -> str:
    """Return one line of visible characters that run from left to right; what is cut off ends in three dots.

    White space of any kind becomes a space, and every other character that cannot be shown a question mark. Cleaning
    twice changes nothing.
    """
    # Before the look at each character: a text of many megabytes must not cost more than a short one.
    clipped = text if len(text) <= length else text[: max(0, length - len(_CUT))] + _CUT[:length]
    if clipped.isascii() and clipped.isprintable():
        return clipped
    return "".join(map(_clean_character, clipped))


def clean_sentence(text: str, length: int = LINE) -> str:
    """Return a clean line in which no blanks follow each other: many would push words to the beginning of a row."""
    return re.sub(" {2,}", " ", clean_line(text, length))


def clean_lines(text: str, length: int = TEXT) -> str:
    """Return a text with its line breaks, each line cleaned; of a text that is too long, the end."""
    plain = text[-length:].replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(clean_line(line, length) for line in plain.split("\n"))


def is_clean(text: str) -> bool:
    """Return whether a text is one line that `clean_line` would leave as it is, whatever its length."""
    return clean_line(text, len(text)) == text


def clean_values(value: Any, length: int = LINE) -> Any:
    """Return nested lists, tuples and dicts with every text in them cleaned, keys included; the rest as it is."""
    if type(value) is str:
        return clean_line(value, length)
    if type(value) in (list, tuple):
        return type(value)(clean_values(one, length) for one in value)
    if type(value) is not dict:
        return value
    cleaned: dict[Any, Any] = {}
    for key, one in value.items():
        name = clean_values(key, length)
        # Different keys may look alike when they are cleaned.
        cleaned[f"{name} ({len(cleaned)})" if name in cleaned else name] = clean_values(one, length)
    return cleaned


def clean_fields(owner: Any, texts: tuple[str, ...] = (), numbers: tuple[str, ...] = ()) -> None:
    """Clean every text in the fields of a dataclass, in place.

    The fields `texts` keep their line breaks; the fields `numbers`, which may be long, hold no text and are left out.
    """
    for name in {one.name for one in fields(owner)} - {*numbers}:
        value = getattr(owner, name)
        cleaned = clean_lines(value) if name in texts else clean_values(value)
        # A frozen dataclass is not finished yet when its __post_init__ calls this.
        object.__setattr__(owner, name, cleaned)


def _clean_character(character: str) -> str:
    if character.isspace():
        return " "
    return character if _is_shown(character) else _SUBSTITUTE


def _is_shown(character: str) -> bool:
    # Not printable are: control and format characters, surrogates, private and unassigned code points, separators.
    if not character.isprintable() or character in _BLANKS:
        return False
    return unicodedata.category(character) not in _MARKS and unicodedata.bidirectional(character) not in _RIGHT_TO_LEFT
