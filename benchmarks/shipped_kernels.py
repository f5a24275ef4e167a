"""Judge and time the shipped kernels: speed-up over the reference, and percent of the speed of light.

    python benchmarks/shipped_kernels.py --worlds 2 4 --size paper --dtype bfloat16 [--out DIR]

Prints a table in Markdown; --out keeps the records in the runs DIR/w2 and DIR/w4.
Exit code 1 if a kernel is not CORRECT.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.record import Record
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings

SOLUTIONS = Path(__file__).parents[1] / "solutions"
HEAD = """| kernel | ranks | verdict | reference us | kernel us | speed-up | 95 % | pace | % of light |
|---|---:|---|---:|---:|---:|---|---|---:|"""


def list_kernels(backends: list[str]) -> list[tuple[str, Path]]:
    """Return problem and file of each kernel, ordered by problem: its kernels then share one reference."""
    files = [path for backend in backends for path in (SOLUTIONS / backend).glob("*.py")]
    return sorted(
        ((path.stem.rpartition("_")[0], path) for path in files), key=lambda f: (_parse_number(f[0]), f[1].stem)
    )


def _parse_number(stem: str) -> int:
    return int(stem.partition("_")[0])


def judge_kernels(
    judge: Judge,
    kernels: list[tuple[str, Path]],
    worlds: list[int],
    size: str,
    dtype: str,
    rigor: str,
    out: Path | None = None,
) -> Iterator[Record]:
    for world in worlds:
        for stem, path in kernels:
            setup = judge.pose(stem, ProblemSettings(nproc=world, size=size, dtype=dtype, trials=3))
            folder = out / f"w{world}" / stem / path.stem if out else None
            yield judge.judge(setup, Candidate.read(path), JudgementSettings(rigor=RIGORS[rigor]), out=folder)


def format_row(record: Record) -> str:
    name, world = record.candidate.name, record.setup.world
    if not record.timing:
        return f"| {name} | {world} | {record.verdict} | {record.reason[:120]} | | | | | |"
    t = record.timing
    low, high = t.interval
    times = f"{t.reference_us:.1f} | {t.candidate_us:.1f} | {t.speedup:.2f} | {low:.2f}-{high:.2f}"
    light = f"{t.percent_of_roofline['candidate']:.0f}" if t.percent_of_roofline else ""
    return f"| {name} | {world} | {record.verdict} | {times} | {record.pace} | {light} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", nargs="+", default=["cuda", "triton"])
    parser.add_argument("--worlds", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--size", default="paper")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rigor", default="quick", choices=RIGORS)
    parser.add_argument("--platform", default="auto")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(HEAD)
    right = True
    with Judge(options.platform) as judge:
        wanted = (options.worlds, options.size, options.dtype, options.rigor, options.out)
        for record in judge_kernels(judge, list_kernels(options.backends), *wanted):
            print(format_row(record), flush=True)
            right = right and record.correct
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
