"""row: 38
tries: reads the reference's file from the package, and runs what it finds
track: scratch
expect: REJECTED imports-the-judge | REJECTED runs-text
unscreened: CHEAT library-call | BUILD_FAILED ValueError
"""

from pathlib import Path

import pkb

(file,) = Path(pkb.__file__).parent.rglob("1_allreduce.py")
names = {}
exec(file.read_text(), names)
solution = names["solution"]
