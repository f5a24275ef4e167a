"""The names of what torch.compile makes of a reference: further baselines."""

from typing import Any

from pkb.errors import UsageError

EAGER = "eager"
_PREFIX = "compile-"
COMPILE_OPTIONS: dict[str, dict[str, Any]] = {
    "compile-default": {"mode": "default"},
    "compile-reduce-overhead": {"mode": "reduce-overhead"},
    "compile-max-autotune": {"mode": "max-autotune"},
    "compile-max-autotune-no-cudagraphs": {"mode": "max-autotune-no-cudagraphs"},
    "compile-cudagraphs": {"backend": "cudagraphs"},
}
"""The arguments of torch.compile, by the name of the baseline."""


def parse_baselines(names: str) -> list[str]:
    """Return the baselines of a list with commas, by their own names or torch's names for the modes; `all` means every
    one. Raises UsageError for an unknown name."""
    chosen = _parse_names(names, [*COMPILE_OPTIONS])
    if EAGER in chosen:
        raise UsageError(f"{EAGER} is the reference itself, which is always timed; name others, or none")
    return chosen


def parse_modes(names: str) -> list[str]:
    """Return the same, where `eager` is a mode too."""
    known = [EAGER, *COMPILE_OPTIONS]
    chosen = _parse_names(names, known)
    if not chosen:
        raise UsageError(f"no mode named; choose from all, {', '.join(map(mode_of, known))}")
    return chosen


def _parse_names(names: str, every: list[str]) -> list[str]:
    known = {mode_of(name): name for name in (EAGER, *COMPILE_OPTIONS)} | {"compile": "compile-default"}
    asked = [name.strip() for name in names.split(",") if name.strip()]
    if asked == ["all"]:
        return every
    if unknown := [name for name in asked if mode_of(name) not in known]:
        raise UsageError(f"unknown baseline {unknown[0]!r}; choose from all, {', '.join(map(mode_of, every))}")
    return list(dict.fromkeys(known[mode_of(name)] for name in asked))


def mode_of(baseline: str) -> str:
    """Return torch's own name for the mode of a baseline."""
    return baseline.removeprefix(_PREFIX)
