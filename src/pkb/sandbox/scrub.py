"""Which environment variables a process of a stranger may inherit."""

import os
import re

# Everything else (keys, tokens, settings of the person's shell) stays outside.
_INHERITED = re.compile(
    r"PATH|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|CC|CXX|MAX_JOBS|CUDA_(?!MPS_)\w+|NVIDIA_\w+|NCCL_\w+|THUNDERKITTENS_ROOT"
)
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL")
"""Variables whose names contain one of these words are never inherited, and their values are redacted."""
ONE_THREAD = {f"{pool}_NUM_THREADS": "1" for pool in ("OMP", "MKL", "OPENBLAS")}
"""Math libraries read these when they are loaded; threads of theirs would not survive a fork."""


def scrub_environment() -> dict[str, str]:
    """Return the variables of this process's environment that candidates and agents may have."""
    return {name: value for name, value in os.environ.items() if _is_harmless(name)}


def _is_harmless(name: str) -> bool:
    return bool(_INHERITED.fullmatch(name)) and not SECRET.search(name)
