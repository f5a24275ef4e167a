"""Makes one CPU rank slow while it synchronises, so that peers who do not wait for it are found out.

A rank that starts late shows a missing barrier before reading. One that also dawdles between its barrier and
what follows shows peers that overwrite a buffer before everybody has read it.
"""

import time

_seconds = 0.0


def set_lag(seconds: float) -> None:
    global _seconds
    _seconds = seconds


def lag() -> None:
    """Called after every synchronising operation of this rank."""
    if _seconds:
        time.sleep(_seconds)
