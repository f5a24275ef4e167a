"""The levels of the sandbox, and which of them the modes of `--sandbox` allow."""

from pkb.errors import UsageError

LEVELS = ("namespaces", "bubblewrap", "landlock", "limits", "off")
"""All levels, from strong to weak."""
CLOSED_LEVELS = ("namespaces", "bubblewrap")
"""The levels that close network and files."""
_ALLOWED = {"auto": LEVELS, "require": CLOSED_LEVELS, "off": ("off",)}


def list_levels(mode: str) -> tuple[str, ...]:
    """Return the levels that a mode allows, from strong to weak. Raises UsageError for an unknown mode."""
    if mode not in _ALLOWED:
        raise UsageError(f"unknown sandbox mode {mode!r}; choose from {', '.join(_ALLOWED)}")
    return _ALLOWED[mode]
