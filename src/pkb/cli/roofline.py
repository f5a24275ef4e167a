"""`pkb roofline`: how fast problems could be at best, and how near to that candidates come."""

import json
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.cli import options as o
from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.analyse.speed_of_light import Light, Scored
    from pkb.hardware.roofline import Hardware

_DEFAULT = "h100_8"


def register(app: typer.Typer) -> None:
    app.command("roofline")(roofline)


def roofline(
    problems: Annotated[str | None, typer.Argument(help="Numbers, ranges, names, a category or `all`.")] = None,
    hardware: Annotated[
        str | None, typer.Option(help=f"h100_8, h200_8, b200_72, a100_8, l40s or this_machine.  [default: {_DEFAULT}]")
    ] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Measure this machine first.")] = False,
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
    """Say what bounds each problem and its speed of light: the least time that its least work takes at peak rates.

    With --run also how much of it reference and candidate reach, each at the sizes of its record, and the SOL score:
    1 at the speed of light, 1/2 at the reference's speed. The speed of light is that of the hardware on which the
    record was made; where the record has none, that of --hardware, if given.

    Example: pkb roofline all --hardware h100_8 --run runs/mine
    """
    from pkb.analyse import rows
    from pkb.analyse.speed_of_light import light, scored
    from pkb.hardware.roofline import Hardware

    if calibrate:
        _calibrate()
        hardware = hardware or "this_machine"
    if problems is None:
        if calibrate:
            return
        raise UsageError("name problems, such as `all`, or measure this machine with --calibrate")
    chosen, known = o.chosen_suite(suite), Hardware.named(hardware or _DEFAULT)
    posed = [light(p, known, o.chosen_size(size, m, n), dtype, nproc) for p in chosen.select(problems)]
    read = rows(run or [])
    wanted = {one.problem for one in posed}
    scores = scored([r for r in read.rows if r.problem in wanted], chosen, known if hardware else None)
    if as_json:
        print(json.dumps(_facts(known, posed, scores), indent=1))
        return
    _print_lights(known, posed)
    if run:
        _print_scores(scores)
    for damaged in read.damaged:
        print(f"skipped, damaged: {damaged}")


def _calibrate() -> None:
    from pkb.hardware.calibrate import calibrate, save

    found = calibrate()
    path = save(found)
    rates = ", ".join(f"{dtype} {rate / 1e12:.3g} TFLOP/s" for dtype, rate in found.flops_per_s.items())
    copies = f"copies {found.hbm_bytes_per_s / 1e9:.3g} GB/s, to a peer {found.link_bytes_per_s / 1e9:.3g} GB/s"
    typer.echo(f"{found.name}: {copies}; {rates}; written to {path}", err=True)


def _facts(hardware: "Hardware", posed: "list[Light]", scores: "list[Scored]") -> dict[str, Any]:
    problems, samples = [asdict(one) for one in posed], [asdict(one) for one in scores]
    return {"hardware": asdict(hardware), "problems": problems, "samples": samples}


def _print_lights(hardware: "Hardware", posed: "list[Light]") -> None:
    from pkb.cli.terminal import print_columns

    print(f"{hardware.name}, {posed[0].world} ranks, {posed[0].dtype}; microseconds at the least")
    rows = [
        (one.problem, one.size or f"{one.m}x{one.n}", one.bound, *map(_us, times))
        for one in posed
        for times in [(one.compute_us, one.memory_us, one.link_us, one.us)]
    ]
    print_columns(("problem", "size", "bound"), ("compute", "memory", "link", "speed of light"), rows)


def _print_scores(scores: "list[Scored]") -> None:
    from pkb.cli.terminal import print_columns

    if not scores:
        print("no record of these problems is both right and timed; `pkb eval --measure-perf` times")
        return
    rows = []
    for one in scores:
        times = [_us(one.row.reference_us), _percent(one.reference_percent)]
        times += [_us(one.row.candidate_us), _percent(one.candidate_percent)]
        score = "-" if one.score is None else f"{one.score:.3f}"
        rows.append((one.row.problem, one.row.run, one.row.sample, _us(one.light_us), *times, score))
    figures = ("speed of light", "reference", "reached", "candidate", "reached", "SOL score")
    print_columns(("problem", "run", "sample"), figures, rows)
    known = [one.score for one in scores if one.score is not None]
    if known:
        print(f"mean SOL score {statistics.fmean(known):.3f} over {len(known)} timed candidates")
    if unknown := len(scores) - len(known):
        print(f"{unknown} without: name the hardware that they ran on with --hardware (this_machine after --calibrate)")


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}%"
