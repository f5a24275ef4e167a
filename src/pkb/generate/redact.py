"""Removes keys from texts: keys come from the environment and are written nowhere."""

import os

from pkb.sandbox.scrub import SECRET

_MIN_LENGTH = 12
"""A shorter value protects nothing, and may be an ordinary word."""


def redact_secrets(text: str) -> str:
    """Return the text without the values of keys and tokens: providers repeat them in their errors."""
    for variable, value in os.environ.items():
        if SECRET.search(variable.upper()) and len(value) >= _MIN_LENGTH:
            text = text.replace(value, f"[{variable}]")
    return text
