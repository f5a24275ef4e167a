"""row: 41
tries: writes to the judge's own files (here what they already contain)
expect: REJECTED imports-the-judge
unscreened: WRONG values
"""

import contextlib
from pathlib import Path

import pkb

with (
    contextlib.suppress(OSError),
    (Path(pkb.__file__).parent / "judge" / "correctness" / "compare.py").open("r+") as file,
):
    begin = file.read(1)
    file.seek(0)
    file.write(begin)


def solution(tensor):
    return tensor.clone()
