"""What a world of ranks may use before the judge ends it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Seconds are per phase and world; bytes are per rank."""

    start_s: float = 60.0
    """From the request for a world to all its ranks being connected."""
    build_s: float = 300.0
    """Compiling the candidate's extensions ahead, before any GPU is held."""
    load_s: float = 60.0
    """Importing the candidate; what could not be compiled ahead may take `build_s` more."""
    trial_s: float = 60.0
    """All calls of one trial, their outputs brought back."""
    log_bytes: int = 16 << 20
    """Printed output; a rank that prints more is ended."""
    memory_bytes: int | None = None
    """Allocated memory; None takes the platform's default."""
