"""Measure how long commands that only read take to start and finish, and compare them with bare Python and with torch.

    python benchmarks/start_up.py [--rounds 15]

The commands take turns, so that they share the machine's state. Prints a table in Markdown with medians, and their
ratios to `python -c pass` and to `import torch` of the same run. Exit code 1 if a command takes 0.7 s or longer, which
says something on an idle core only.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from helpers.made import make_run  # type: ignore[import-not-found]

TARGET_S = 0.7
BARE, TORCH = "python -c pass", "python -c 'import torch'"


def list_commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands by the names under which they are printed; `folder` receives a run to report on."""
    python, pkb = sys.executable, [sys.executable, "-m", "pkb"]
    run = make_run(folder / "run", ["1_allreduce", "13_gemm_allreduce"])
    kernel = Path(__file__).parents[1] / "solutions" / "triton" / "1_allreduce_triton.py"
    return {
        BARE: [python, "-c", "pass"],
        TORCH: [python, "-c", "import torch"],
        "pkb --help": [*pkb, "--help"],
        "pkb list": [*pkb, "list"],
        "pkb show 13": [*pkb, "show", "13"],
        "pkb check FILE": [*pkb, "check", str(kernel)],
        "pkb export RUN": [*pkb, "export", str(run), "--out", str(folder / "records.jsonl")],
        "pkb report RUN": [*pkb, "report", str(run), "--out", str(folder / "report")],
    }


def time_command(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def find_cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="times that each command is run")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        commands = list_commands(Path(folder))
        for command in commands.values():
            # The first run reads files from the disk and may compile them.
            time_command(command)
        found = [{name: time_command(command) for name, command in commands.items()} for _ in range(rounds)]
    medians = {name: statistics.median(times[name] for times in found) for name in commands}
    load = f"load average {os.getloadavg()[0]:.1f}"
    print(f"{find_cpu()}, {os.cpu_count()} cores, Python {platform.python_version()}, {date.today()}, {load}")
    print(f"medians of {rounds} rounds\n\n| command | seconds | x bare Python | x import torch |\n|---|---:|---:|---:|")
    for name, seconds in medians.items():
        print(f"| `{name}` | {seconds:.2f} | {seconds / medians[BARE]:.1f} | {seconds / medians[TORCH]:.2f} |")
    slow = [name for name in medians if name.startswith("pkb") and medians[name] >= TARGET_S]
    print(f"\nslower than {TARGET_S} s: {', '.join(slow) or 'none'}")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
