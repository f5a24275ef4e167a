"""The modules that candidates written for the public ParallelKernelBench import from `utils`.

`utils/` lies in a folder of its own, which a rank puts on its path just before it imports a candidate. Nothing else
imports these modules; they hold what candidates call, with the published names and arguments.
"""

import importlib
import sys
from pathlib import Path


def offer_modules(checkout: Path | None = None) -> None:
    """Let this process import `utils`; and, behind it, what the problem's own checkout has of that name and others."""
    sys.path.insert(0, str(Path(__file__).parent))
    if checkout:
        importlib.import_module("utils").__path__.append(str(checkout / "utils"))
        sys.path.append(str(checkout))
