"""Which environment variables the processes of candidates and agents may inherit."""

import os
import re

from pkb.backends import list_folder_variables

# Everything else (keys, tokens, settings of the user's shell) stays outside.
_INHERITED = re.compile(
    r"PATH|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|CC|CXX|MAX_JOBS|CUDA_(?!MPS_)\w+|NVIDIA_\w+|NCCL_\w+|PKB_PLUGINS"
)
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL")
"""A variable whose name contains one of these words is never inherited, and its value is redacted."""
ONE_THREAD = {f"{pool}_NUM_THREADS": "1" for pool in ("OMP", "MKL", "OPENBLAS")}
"""One thread per math library, which reads these variables when it is loaded: its threads would not survive a fork."""


def scrub_environment() -> dict[str, str]:
    """Return the variables of this process's environment that candidates and agents may have."""
    return {name: value for name, value in os.environ.items() if _is_harmless(name)}


def _is_harmless(name: str) -> bool:
    is_inherited = _INHERITED.fullmatch(name) or name in list_folder_variables()
    return bool(is_inherited) and not SECRET.search(name)
