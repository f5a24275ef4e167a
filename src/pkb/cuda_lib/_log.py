"""What a compiler said, cut down to what its reader can act on."""

import re

MOST_LINES = 20
_LINES_PER_ERROR = 5
_ERROR = re.compile(
    r"\b(error|fatal)\s*(#?[\w-]+)?\s*:|undefined (reference|symbol)|multiple definition", re.IGNORECASE
)
_WARNING = re.compile(r"\b(warning|remark)\s*(#?[\w-]+)?\s*:", re.IGNORECASE)
_NOISE = re.compile(r"aborted due to errors|compilation terminated|\d errors? detected")
_ORIGIN = re.compile(r"^\s.*(detected during|instantiation of)")


class CompileError(RuntimeError):
    """A kernel that does not compile. The message names lines of the candidate's own source, as kernel.cu(LINE)."""


def trimmed(log: str) -> str:
    """The errors in the output of NVRTC, nvcc, ptxas, a host compiler or ninja, without warnings and notes."""
    errors = list(dict.fromkeys(_errors(log)))
    if not errors:
        return "\n".join([line.rstrip() for line in log.splitlines() if line.strip()][-MOST_LINES:])
    kept: list[str] = []
    for number, error in enumerate(errors):
        if kept and len(kept) + len(error) > MOST_LINES - 1:
            return "\n".join([*kept, f"and {len(errors) - number} more errors"])
        kept += error
    return "\n".join(kept)


def _errors(log: str) -> list[tuple[str, ...]]:
    """Each error with the indented lines that explain it, and where the template was asked for."""
    errors: list[list[str]] = []
    explains = wanted = False
    for line in log.splitlines():
        if _WARNING.search(line) or _NOISE.search(line):
            explains = wanted = False
        elif _ERROR.search(line):
            errors.append([line.rstrip()])
            explains = wanted = True
        elif _ORIGIN.search(line):
            if wanted:
                errors[-1] = [*errors[-1][: _LINES_PER_ERROR - 1], line.rstrip()]
        else:
            explains = explains and line.startswith((" ", "\t"))
            if explains and len(errors[-1]) < _LINES_PER_ERROR:
                errors[-1].append(line.rstrip())
    return [tuple(error) for error in errors]
