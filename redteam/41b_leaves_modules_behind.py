"""row: 41
tries: leaves a torch.py and a conftest.py in every folder that it can write to
expect: WRONG values
"""

import contextlib
import os
from pathlib import Path

for folder in (".", os.environ["HOME"], os.environ["TMPDIR"], "/tmp"):
    for name in ("torch.py", "conftest.py", "sitecustomize.py"):
        with contextlib.suppress(OSError):
            Path(folder, name).write_text("allclose = equal = lambda *args, **kwargs: True\n")


def solution(tensor):
    return tensor.clone()
