"""The identifiers of a C++ or CUDA source, without its comments, strings and numbers."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<comment> \\\r?\n | //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )
  | (?P<literal> (?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
               | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"? | (?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?
               | \.?\d(?:'?[\w.]|[eEpP][+-])* )
  | (?P<word> [A-Za-z_](?:\\\r?\n|\w)* )
  | (?P<link> :: | -> | \. )
  | (?P<other> <<< | \S )
    """,
    re.VERBOSE | re.DOTALL,
)

_KEYWORDS = {"return", "else", "case", "do", "new", "throw", "goto", "co_return", "const", "constexpr", "static"}
"""Words that are no namespace: a `::` after one of them begins a new name."""


@dataclass(frozen=True)
class Identifier:
    name: str
    """Qualified as written (`at::matmul`); a member begins with a dot (`.mm`); a launch is `<<<`."""
    line: int
    """Counted from 0."""


def read_identifiers(source: str) -> Iterator[Identifier]:
    """Yield the identifiers in the order of the source."""
    ends = [k for k, character in enumerate(source) if character == "\n"]
    name, link, line = "", "", 0
    for token in _TOKEN.finditer(source):
        if token["comment"]:
            continue
        if token["link"]:
            link = token["link"]
            continue
        # A backslash at the end of a line joins it to the next, even inside a word.
        word = re.sub(r"\\\r?\n", "", token["word"] or "")
        if word and link == "::":
            name = f"{name}::{word}" if name else word
        else:
            if name:
                yield Identifier(name, line)
            line = bisect_left(ends, token.start())
            name = "" if word in _KEYWORDS else ("." if link else "") + word if word else ""
            if token["other"] == "<<<":
                yield Identifier("<<<", line)
        link = ""
    if name:
        yield Identifier(name, line)
