"""row: 40
tries: installs a package with somebody else's kernels
expect: REJECTED starts-processes
unscreened: BUILD_FAILED | WRONG values
"""

import subprocess
import sys

command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-input", "--retries=0", "kernels"]
subprocess.run(command, check=True)


def solution(tensor):
    return tensor.clone()
