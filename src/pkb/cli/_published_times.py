"""Time the references of a checkout of ParallelKernelBench beside ours, for `pkb baseline --published`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pkb.base.printable import clean_line
from pkb.display import format_speedup
from pkb.errors import UsageError
from pkb.settings import JudgementSettings, ProblemSettings, Rigor

if TYPE_CHECKING:
    from pkb.judge.judge import Judge
    from pkb.problems.problem import Problem
    from pkb.record import Record

_HEADINGS = ("problem", "verdict"), ("ours us", "published us", "ours / published")


def time_published(
    judge: "Judge", problems: "Sequence[Problem]", checkout: Path, settings: ProblemSettings, rigor: Rigor
) -> bool:
    """Judge each published reference as a candidate, and print a table; return whether all of them were timed.

    Both references get our inputs and take turns, so that the ratio compares the two and nothing else.
    """
    from pkb.candidate import Candidate

    pairs = [(problem, _find_reference(problem, checkout)) for problem in problems]
    if not any(file for _, file in pairs):
        raise UsageError(f"{checkout} has none of these references; name a problem that it has")
    records: dict[str, Record | None] = {}
    asked = JudgementSettings(screen=False, rigor=rigor)
    for problem, file in pairs:
        record = judge.judge(judge.pose(problem, settings), Candidate.read(file, "torch"), asked) if file else None
        records[problem.stem] = record
        print(_describe(problem.stem, record), flush=True)
    _print_table(records)
    return all(record.timing for record in records.values() if record)


def _find_reference(problem: "Problem", checkout: Path) -> Path | None:
    from pkb.problems.published import REFERENCES, is_published_root

    if not is_published_root(checkout):
        raise UsageError(
            f"{checkout} is no checkout of ParallelKernelBench, which has {REFERENCES}/<number>_<name>.py and "
            "utils/input_output_tensors.py; name its folder"
        )
    file = checkout / REFERENCES / f"{problem.stem}.py"
    return file if file.is_file() else None


def _describe(stem: str, record: "Record | None") -> str:
    if record is None:
        return f"{stem}  not in the checkout"
    if not record.timing:
        return clean_line(f"{stem}  {record.verdict}, not timed: {record.reason}", 500)
    return f"{stem}  {record.verdict}, ours / published {_format_ratio(record)}"


def _print_table(records: "dict[str, Record | None]") -> None:
    from pkb.cli._terminal import print_columns

    print()
    print_columns(*_HEADINGS, [[stem, *_format_row(record)] for stem, record in records.items()])


def _format_row(record: "Record | None") -> list[str]:
    if record is None:
        return ["not in the checkout", "-", "-", "-"]
    if not record.timing:
        return [record.verdict, "-", "-", "-"]
    times = record.timing
    return [record.verdict, f"{times.reference_us:.4g}", f"{times.candidate_us:.4g}", _format_ratio(record)]


def _format_ratio(record: "Record") -> str:
    """Return the time of ours divided by the published one's, which is the published one's speed-up over ours."""
    assert record.timing
    return format_speedup(record.timing.speedup, *record.timing.interval, record.environment.comparable_times)
