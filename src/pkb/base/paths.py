"""The folder in which pkb keeps what it has built or measured on this machine."""

import os
from pathlib import Path


def find_cache_folder() -> Path:
    """Return PKB_CACHE, or pkb's folder in the user's cache."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("PKB_CACHE") or Path(user) / "pkb")
