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
    """Return the baselines of a list with commas; `all` means every one. Raises UsageError for an unknown name."""
    chosen = list(COMPILE_OPTIONS) if names == "all" else [name for name in names.split(",") if name]
    if unknown := [name for name in chosen if name not in COMPILE_OPTIONS]:
        raise UsageError(f"unknown baseline {unknown[0]!r}; choose from all, {', '.join(COMPILE_OPTIONS)}")
    return chosen


def parse_modes(names: str) -> list[str]:
    """Return the baselines named by torch's own names for the modes, or `eager`; `all` means every one."""
    known = {mode_of(name): name for name in (EAGER, *COMPILE_OPTIONS)}
    chosen = list(known) if names == "all" else [mode_of(name.strip()) for name in names.split(",") if name.strip()]
    if unknown := [mode for mode in chosen if mode not in known]:
        raise UsageError(f"unknown mode {unknown[0]!r}; choose from all, {', '.join(known)}")
    if not chosen:
        raise UsageError(f"no mode named; choose from all, {', '.join(known)}")
    return [known[mode] for mode in dict.fromkeys(chosen)]


def mode_of(baseline: str) -> str:
    """Return torch's own name for the mode of a baseline."""
    return baseline.removeprefix(_PREFIX)
