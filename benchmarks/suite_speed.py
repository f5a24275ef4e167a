"""Measure how long the whole suite takes: every reference as its own candidate, and `pkb lint` over all problems.

python benchmarks/suite_speed.py
"""

import os
import subprocess
import sys
import time

COMMANDS = {
    "pkb eval all --candidate reference --nproc 4 --size tiny": 4 * 60,
    "pkb lint all": 20 * 60,
}


def main() -> None:
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    for command, target in COMMANDS.items():
        start = time.monotonic()
        words = command.split()[1:]
        ran = subprocess.run([sys.executable, "-m", "pkb", *words], capture_output=True, text=True)
        seconds = time.monotonic() - start
        lines = ran.stdout.strip().splitlines()
        print(f"{command}: {seconds:.0f} s (target {target} s), exit code {ran.returncode}, {len(lines)} lines")
        print(f"    last: {lines[-1]}")


if __name__ == "__main__":
    main()
