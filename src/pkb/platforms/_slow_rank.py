"""Makes one CPU rank slow while it synchronises, so that peers that do not wait for it are found.

A rank that starts late shows a missing barrier before reading. A rank that is also slow between its barrier and what
follows shows peers that overwrite a buffer before every rank has read it.
"""

import time

_seconds = 0.0


def set_barrier_delay(seconds: float) -> None:
    """Set how long this rank sleeps after each operation that synchronises; 0 for not at all."""
    global _seconds
    _seconds = seconds


def sleep_after_barrier() -> None:
    """Sleep for the delay that is set; called after every operation of this rank that synchronises."""
    if _seconds:
        time.sleep(_seconds)
