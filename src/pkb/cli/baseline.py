"""`pkb baseline`: time the references themselves, and keep the times for judgements on the same machine."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.cli import options as o
from pkb.errors import UsageError
from pkb.judge.worlds.prestart import start_nursery
from pkb.settings import Limits, ProblemSettings, Rigor, find_rigor

if TYPE_CHECKING:
    from pkb.judge.judge import Judge
    from pkb.judge.setup.setup import Setup
    from pkb.judge.timing.baseline_store import Stored
    from pkb.platforms import Platform

INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    app.command("baseline")(baseline)


def baseline(
    problems: Annotated[str | None, typer.Argument(help="Numbers, ranges, names, a category or `all`.")] = None,
    suite: o.SuiteName = "parallel",
    size: o.SizeName = "paper",
    m: o.M = None,
    n: o.N = None,
    dtype: o.Dtype = "float32",
    nproc: o.UsualNproc = None,
    inputs: o.Inputs = "sound",
    modes: Annotated[
        str,
        typer.Option(
            help="What to time, with commas: eager, default, reduce-overhead, max-autotune, "
            "max-autotune-no-cudagraphs, cudagraphs; or all."
        ),
    ] = "all",
    rigor: o.RigorName = "paper",
    store: o.Store = None,
    again: Annotated[bool, typer.Option("--again", help="Time also what is stored already.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Print what is stored, and whether it holds here.")] = False,
    platform: o.PlatformName = "auto",
    timeout: o.Timeout = 60.0,
) -> None:
    """Time references, eager and as torch.compile makes them, and store the times by hardware and software.

    `pkb eval --baselines all --reuse-baselines` takes them from there. What is stored already is not timed again.

    Example: pkb baseline level1 --suite kernelbench --dtype float32 --store baselines
    """
    from pkb.judge.timing.baseline_store import default_store

    folder = store or default_store()
    if listing:
        return _print_stored(folder, platform)
    if problems is None:
        raise UsageError("name problems, such as `all`, or see what is stored with --list")
    start_nursery()
    from pkb.judge.judge import Judge
    from pkb.protocol.compile_modes import parse_modes

    chosen, wanted, enough = o.chosen_suite(suite).select(problems), parse_modes(modes), find_rigor(rigor)
    with Judge(platform, Limits(load_s=timeout, trial_s=timeout)) as judge:
        posed = ProblemSettings(nproc, o.chosen_size(size, m, n), dtype, inputs=inputs)
        setups = [judge.pose(one, posed) for one in chosen]
        try:
            failed = sum(not _time(judge, setup, wanted, enough, folder, again) for setup in setups)
        except KeyboardInterrupt:
            print(f"\ninterrupted: what was timed is in {folder}, no rank left running", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
    print(f"{len(setups) - failed} of {len(setups)} references timed; times in {folder}")
    raise typer.Exit(1 if failed else 0)


def _time(judge: "Judge", setup: "Setup", modes: list[str], rigor: Rigor, store: Path, again: bool) -> bool:
    """Time what is missing, and store each mode as soon as it is timed; whether the reference could be timed."""
    from pkb.failure import Failure
    from pkb.judge.timing.baseline_store import asked_here, read
    from pkb.runs import Damage

    here = asked_here(setup, judge.platform)
    found = read(here.path(store))
    if isinstance(found, Damage):
        print(f"damaged, timed again: {found}")
    kept = found if found and not isinstance(found, Damage) and not found.differences(here) else here
    missing = modes if again else kept.lacks(modes, rigor.name)
    if not missing:
        print(f"{setup.problem.stem}  stored already")
    try:
        for mode, times in judge.times(setup, missing, rigor):
            kept = kept.with_mode(mode, times)
            kept.save(store)
            print(f"{setup.problem.stem}  {mode}  {_in_words(times, kept.cpu)}", flush=True)
    except Failure as failure:
        print(f"{setup.problem.stem}  cannot be timed: {failure.reason}", flush=True)
        return False
    return True


def _in_words(times: dict[str, Any], cpu: bool) -> str:
    if "failed" in times:
        return f"failed: {times['failed']}"
    clock = " (CPU times)" if cpu else ""
    low, high = times["interval"]
    said = f"{times['us']:.4g} us ({low:.4g}-{high:.4g}){clock}"
    if "over_eager" not in times:
        return said
    low, high = times["over_eager"]["interval"]
    speed = f"{times['over_eager']['speedup']:.2f} ({low:.2f}-{high:.2f}) times as fast as eager"
    return f"{said}, {speed}, compiled in {times['compile_s']:.1f} s"


def _print_stored(store: Path, platform: str) -> None:
    from pkb.cli.terminal import print_columns
    from pkb.judge.timing.baseline_store import read_all
    from pkb.platforms import platform_named

    found, damaged = read_all(store)
    here = platform_named(platform)
    if found:
        headings = ("problem", "size", "dtype", "ranks", "modes", "hardware", "timed", "holds here")
        print_columns(headings, (), [_row(one, here) for one in found])
    else:
        print(f"nothing is stored in {store}; `pkb baseline PROBLEMS` times references")
    for one in damaged:
        print(f"skipped, damaged: {one}")


def _row(one: "Stored", here: "Platform") -> list[str]:
    from pkb.protocol.compile_modes import mode_of

    timed = [mode_of(mode) for mode, times in one.modes.items() if "failed" not in times]
    when = max(times["when"] for times in one.modes.values())[:10]
    posed = [one.posed[name] for name in ("size", "dtype", "world")]
    clock = " (CPU times)" if one.cpu else ""
    return [one.problem, *posed, " ".join(timed), one.machine["hardware"] + clock, when, _holds(one, here)]


def _holds(one: "Stored", here: "Platform") -> str:
    from pkb.judge.timing.baseline_store import machine

    differences = one.differences(replace(one, machine=machine(here, int(one.posed["world"]))))
    return ", ".join(differences) or "yes"
