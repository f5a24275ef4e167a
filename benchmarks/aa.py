"""Time identical code against itself: the ratio that a fair clock measures is 1.00.

    python benchmarks/aa.py --size paper --dtype bfloat16
    python benchmarks/aa.py --problems all --worlds 1 2 4 --json aa.jsonl --minutes 9
    python benchmarks/aa.py --problems all --worlds 1 2 4 --json aa.jsonl --skip-done aa.jsonl --minutes 9
    python benchmarks/aa.py --m 4096 --n 4096

Every problem's own source is judged and timed as its own candidate. Prints each ratio with its interval as soon as it
is known, then the worst distance from 1, how many judgements said FASTER or SLOWER, and what a judgement took. --json
adds one line per pair to a file: the seconds of the judgement and its whole record, with all raw block times.
--skip-done leaves out the pairs that such a file has, and counts them in the summary: a long run fits into several
visits. Exit code 1 if a pair was not a TIE or had no time.
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import Setup
from pkb.problems.size import Size
from pkb.problems.suite import select_problems
from pkb.record import Pace, Record
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings

PROBLEMS = "1,2,7,8,12,13,16,18,20,45,52,73"
WORLDS = (1, 2, 4)
_RESERVE = 2.0
"""No pair is begun unless this many times the median judgement is left of --minutes."""

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Pair:
    """Identical code, judged and timed against itself."""

    record: Record
    wall_s: float
    """What the whole judgement took."""

    def to_json(self) -> str:
        return json.dumps({"wall_s": round(self.wall_s, 3), "record": self.record.to_fields()})

    @classmethod
    def from_json(cls, line: str) -> "Pair":
        fields = json.loads(line)
        return cls(Record.from_fields(fields["record"]), fields["wall_s"])

    @property
    def key(self) -> Key:
        """What makes two pairs of different visits the same one."""
        setup, timing = self.record.setup, self.record.timing
        rigor = timing.rigor if timing else ""
        return self.record.environment.platform, self.record.problem, setup.world, setup.m, setup.n, setup.dtype, rigor

    def format_line(self) -> str:
        record, t = self.record, self.record.timing
        name = f"{record.problem:40} W={record.setup.world}"
        if t is None:
            return f"{name}  {record.verdict}: {record.reason}  {self.wall_s:.1f} s"
        low, high = t.interval
        control = f"control {t.control.ratio:.3f}" if t.control else "no control"
        times = f"{t.reference_us:9.1f} {t.candidate_us:9.1f} us"
        return f"{name}  {t.speedup:.3f} ({low:.3f}-{high:.3f}) {record.pace:6} {times}  {control}  {self.wall_s:.1f} s"


def main() -> None:
    options = parse_options()
    done = read_pairs(options.skip_done)
    interrupted, start = False, time.monotonic()
    with Judge(options.platform) as judge:
        wanted = {make_key(judge, setup, options.rigor): setup for setup in pose_pairs(judge, options)}
        pairs = [pair for pair in done if pair.key in wanted]
        known, earlier = {pair.key for pair in pairs}, len(pairs)
        try:
            for setup in (setup for key, setup in wanted.items() if key not in known):
                if is_time_up(start, options.minutes, pairs[earlier:]):
                    break
                pairs.append(judge_pair(judge, setup, options.rigor))
                print(pairs[-1].format_line(), flush=True)
                add_line(options.json, pairs[-1])
        except KeyboardInterrupt:
            interrupted = True
        left = len(wanted) - len(pairs)
        print(summarize(judge.platform.name, pairs, earlier, left, time.monotonic() - start))
    sys.exit(130 if interrupted else any(pair.record.pace is not Pace.TIE for pair in pairs))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=[PROBLEMS], help="numbers, ranges, names, or all")
    parser.add_argument("--worlds", type=int, nargs="+", default=WORLDS)
    parser.add_argument("--size", default="paper")
    parser.add_argument("--m", type=int, help="with --n, in place of --size")
    parser.add_argument("--n", type=int)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rigor", default="paper", choices=RIGORS)
    parser.add_argument("--platform", default="auto")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add a line per pair, with all raw times")
    parser.add_argument("--minutes", type=float, help="begin no pair that would end later")
    parser.add_argument("--skip-done", type=Path, metavar="FILE", help="skip pairs that were timed in this file")
    options = parser.parse_args()
    if (options.m is None) != (options.n is None):
        parser.error("give --m and --n together")
    return options


def pose_pairs(judge: Judge, options: argparse.Namespace) -> Iterator[Setup]:
    """Yield the setups in order; say which ones cannot be posed, and why."""
    size = options.size if options.m is None else Size(options.m, options.n)
    for problem in select_problems(",".join(options.problems)):
        for world in options.worlds:
            try:
                yield judge.pose(problem, ProblemSettings(nproc=world, size=size, dtype=options.dtype, trials=1))
            except UsageError as error:
                print(f"{problem.stem:40} W={world}  not posed: {error}", flush=True)


def judge_pair(judge: Judge, setup: Setup, rigor: str) -> Pair:
    start = time.monotonic()
    record = judge.judge(setup, Candidate.reference(setup.problem), JudgementSettings(rigor=RIGORS[rigor]))
    return Pair(record, time.monotonic() - start)


def make_key(judge: Judge, setup: Setup, rigor: str) -> Key:
    """Return the key that the pair of this setup will have once it has been timed."""
    facts = setup.facts()
    return judge.platform.name, setup.problem.stem, setup.world, facts["m"], facts["n"], setup.dtype, rigor


def read_pairs(path: Path | None) -> list[Pair]:
    """Return the pairs that earlier visits timed. A line that a killed visit cut off, or that has no time, is none."""
    found: dict[Key, Pair] = {}
    for line in path.read_text().splitlines() if path and path.exists() else []:
        try:
            pair = Pair.from_json(line)
        except (ValueError, KeyError) as error:
            print(f"{path}: skipped a line: {str(error)[:200]}", file=sys.stderr)
            continue
        if pair.record.timing:
            found[pair.key] = pair
    return list(found.values())


def add_line(path: Path | None, pair: Pair) -> None:
    if path:
        with path.open("a") as file:
            file.write(pair.to_json() + "\n")


def is_time_up(start: float, minutes: float | None, pairs: list[Pair]) -> bool:
    usual = statistics.median(pair.wall_s for pair in pairs) if pairs else 0.0
    return minutes is not None and time.monotonic() - start + _RESERVE * usual > 60 * minutes


def summarize(platform: str, pairs: list[Pair], earlier: int, left: int, seconds: float) -> str:
    timed = [(abs(t.speedup - 1), pair.record) for pair in pairs if (t := pair.record.timing)]
    distance, worst = max(timed, key=lambda one: one[0], default=(0.0, None))
    place = f" ({worst.problem} at {worst.setup.world})" if worst else ""
    paces = Counter(pair.record.pace for pair in pairs)
    spans = [pair.wall_s for pair in pairs] or [0.0]
    before = f" ({earlier} of them in earlier visits)" if earlier else ""
    return (
        f"{platform}: {len(pairs)} pairs of identical code{before} in {seconds:.0f} s; {left} left\n"
        f"worst |ratio - 1| {distance:.3f}{place}; FASTER {paces[Pace.FASTER]}, "
        f"SLOWER {paces[Pace.SLOWER]}, TIE {paces[Pace.TIE]}, no time {paces[Pace.UNTIMED]}\n"
        f"seconds per judgement: median {statistics.median(spans):.1f}, most {max(spans):.1f}"
    )


if __name__ == "__main__":
    main()
