"""`pkb roofline`: compute how fast problems could be at best, and how close candidates come to that."""

import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.cli import _options as o
from pkb.cli._messages import print_skipped
from pkb.errors import UsageError
from pkb.hardware.roofline import list_profiles

if TYPE_CHECKING:
    from pkb.analyse.speed_of_light import LightScore, SpeedOfLight
    from pkb.hardware.roofline import Hardware

_DEFAULT = "h100_8"


def register(app: typer.Typer) -> None:
    app.command("roofline")(roofline)


def roofline(
    context: typer.Context,
    problems: o.OptionalProblems = None,
    hardware: Annotated[
        str | None,
        typer.Option(help=f"The hardware profile: {o.join_names(list_profiles())}.", show_default=_DEFAULT),
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure this machine first, and store the result as this_machine.")
    ] = False,
    run: Annotated[
        list[Path] | None, typer.Option(help="Score the timed records of this run; may be repeated.")
    ] = None,
    suite: o.SuiteName = "parallel",
    size: o.SizeName = "paper",
    m: o.M = None,
    n: o.N = None,
    dtype: o.Dtype = "bfloat16",
    nproc: o.Nproc = 8,
    as_json: o.Json = False,
) -> None:
    """Print the resource that bounds each problem, and its speed of light: the time of its least work at peak rates.

    With --run, print also what percentage of it reference and candidate reach at the sizes of their records, and the
    SOL score: 1 at the speed of light, 1/2 at the reference's speed. The speed of light comes from the record; where
    the record has none, it is computed for --hardware, if that is given.

    Example: pkb roofline all --hardware h100_8 --run runs/mine
    """
    from pkb.analyse import read_rows
    from pkb.analyse.speed_of_light import compute_speed_of_light, score_rows
    from pkb.hardware.roofline import Hardware
    from pkb.problems.suite import find_suite

    if calibrate:
        _calibrate()
        hardware = hardware or "this_machine"
    if problems is None:
        if calibrate:
            return
        raise UsageError("name problems, for example `all`, or measure this machine with --calibrate")
    chosen, known = find_suite(suite), Hardware.load(hardware or _DEFAULT)
    shape = o.parse_size(context, size, m, n)
    posed = [compute_speed_of_light(p, known, shape, dtype, nproc) for p in chosen.select(problems)]
    read = read_rows(run or [])
    wanted = {one.problem for one in posed}
    scores = score_rows([r for r in read.rows if r.problem in wanted], chosen, known if hardware else None)
    if as_json:
        print(json.dumps(_collect_facts(known, posed, scores), indent=1))
        return
    _print_bounds(known, posed)
    if run:
        _print_scores(scores)
    print_skipped(read.damaged)


def _calibrate() -> None:
    from pkb.hardware.calibrate import calibrate, save

    found = calibrate()
    path = save(found)
    rates = ", ".join(f"{dtype} {rate / 1e12:.3g} TFLOP/s" for dtype, rate in found.flops_per_s.items())
    copies = f"copies {found.hbm_bytes_per_s / 1e9:.3g} GB/s, to a peer {found.link_bytes_per_s / 1e9:.3g} GB/s"
    print(f"{found.name}: {copies}; {rates}; written to {path}", file=sys.stderr)


def _collect_facts(hardware: "Hardware", posed: "list[SpeedOfLight]", scores: "list[LightScore]") -> dict[str, Any]:
    problems, samples = [asdict(one) for one in posed], [asdict(one) for one in scores]
    return {"hardware": asdict(hardware), "problems": problems, "samples": samples}


def _print_bounds(hardware: "Hardware", posed: "list[SpeedOfLight]") -> None:
    from pkb.cli._terminal import print_columns

    print(f"{hardware.name}, {posed[0].world} ranks, {posed[0].dtype}; microseconds")
    rows = [
        (one.problem, one.size or f"{one.m}x{one.n}", one.bound, *map(_format_us, times))
        for one in posed
        for times in [(one.compute_us, one.memory_us, one.link_us, one.us)]
    ]
    print_columns(("problem", "size", "bound"), ("compute", "memory", "link", "speed of light"), rows)


def _print_scores(scores: "list[LightScore]") -> None:
    from pkb.cli._terminal import print_columns

    if not scores:
        print("no record of these problems is both correct and timed; `pkb eval --measure-perf` times candidates")
        return
    rows = []
    for one in scores:
        times = [_format_us(one.row.reference_us), _format_percent(one.reference_percent)]
        times += [_format_us(one.row.candidate_us), _format_percent(one.candidate_percent)]
        score = "-" if one.score is None else f"{one.score:.3f}"
        rows.append((one.row.problem, one.row.run, one.row.sample, _format_us(one.light_us), *times, score))
    figures = ("speed of light", "reference", "reached", "candidate", "reached", "SOL score")
    print_columns(("problem", "run", "sample"), figures, rows)
    known = [one.score for one in scores if one.score is not None]
    if known:
        print(f"mean SOL score {statistics.fmean(known):.3f} over {len(known)} timed candidates")
    if unknown := len(scores) - len(known):
        print(f"{unknown} without a score: name their hardware with --hardware (this_machine after --calibrate)")


def _format_us(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _format_percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}%"
