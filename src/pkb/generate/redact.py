"""Keys come from the environment and stay there."""

import os

from pkb.sandbox.scrub import SECRET

_SHORTEST = 12
"""What is shorter guards nothing, and may be an ordinary word."""


def without_secrets(text: str) -> str:
    """The text, with the values of keys and tokens taken out: providers repeat them in their errors."""
    for variable, value in os.environ.items():
        if SECRET.search(variable.upper()) and len(value) >= _SHORTEST:
            text = text.replace(value, f"[{variable}]")
    return text
