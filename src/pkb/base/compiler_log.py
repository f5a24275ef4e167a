"""Cuts the output of compilers down to the errors that its reader can act on."""

import re
from collections.abc import Iterable, Sequence

MOST_LINES = 20
_LINES_PER_ERROR = 5
_WIDTH = 200
_COMMAND = re.compile(r"\[\d+/\d+\] |ninja: |FAILED: ")
_ERROR = re.compile(
    r"(?i:\b(error|fatal)\s*(#?[\w-]+)?\s*:)|undefined (reference|symbol)|multiple definition|cannot find|"
    r": not found$|Killed"
)
_WARNING = re.compile(r"(?i)\b(warning|remark)\s*(#?[\w-]+)?\s*:")
_CONSEQUENCE = re.compile(r"^collect2: error|aborted due to errors|linker command failed|compilation terminated")
_CALLER_ABOVE = re.compile(r"required from here$")
"""gcc names the place that instantiates a template before the error in the template."""
_CALLER_BELOW = re.compile(r"^\s.*(detected during|instantiation of)|requested here$")
"""nvcc and clang name it after the error."""


def trim_log(log: str) -> list[str]:
    """Return the first errors in the output of NVRTC, nvcc, ptxas, gcc, clang, a linker or ninja.

    Each error comes with the source lines under it, and the place that instantiates its template. Warnings,
    notes, commands and errors that follow from another error are left out. Without an error, return the last lines.
    """
    found = list(dict.fromkeys(_find_errors(log.splitlines())))
    causes = [error for error in found if not _CONSEQUENCE.search(error[0])]
    said = [line for line in log.splitlines() if line.strip() and not _COMMAND.match(line)]
    lines = _take_first(causes or found) or said[-MOST_LINES:] or ["the compiler said nothing"]
    return [line.rstrip()[:_WIDTH] for line in lines]


def _take_first(errors: Sequence[tuple[str, ...]]) -> list[str]:
    """Return whole errors, as many as fit into MOST_LINES, and the number of the others."""
    kept: list[str] = []
    for number, error in enumerate(errors):
        if kept and len(kept) + len(error) > MOST_LINES - 1:
            return [*kept, f"and {len(errors) - number} more errors"]
        kept += error
    return kept


def _find_errors(lines: Iterable[str]) -> list[tuple[str, ...]]:
    """Return each error with the lines that explain it."""
    errors: list[list[str]] = []
    callers: list[str] = []
    has_error = is_explained = False
    for line in lines:
        if _WARNING.search(line):
            has_error, is_explained, callers = False, False, []
        elif _CALLER_ABOVE.search(line):
            callers = [line]
        elif _ERROR.search(line):
            errors.append([line, *callers])
            has_error, is_explained, callers = True, True, []
        elif _CALLER_BELOW.search(line):
            if has_error:
                errors[-1] = [*errors[-1][: _LINES_PER_ERROR - 1], line]
        else:
            is_explained = is_explained and line.startswith((" ", "\t"))
            if is_explained and len(errors[-1]) < _LINES_PER_ERROR:
                errors[-1].append(line)
    return [tuple(error) for error in errors]
