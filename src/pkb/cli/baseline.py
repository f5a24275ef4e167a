"""`pkb baseline`: time references, and store the times for judgements on the same machine."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.cli import _options as o
from pkb.cli._messages import exit_interrupted, print_skipped
from pkb.display import format_speedup
from pkb.errors import UsageError
from pkb.judge.worlds.prestart import start_nursery
from pkb.protocol.compile_modes import COMPILE_OPTIONS, EAGER, mode_of, parse_modes
from pkb.settings import Limits, ProblemSettings, Rigor, find_rigor

if TYPE_CHECKING:
    from pkb.judge.judge import Judge
    from pkb.judge.setup.setup import Setup
    from pkb.judge.timing.baseline_store import StoredTimes
    from pkb.platforms import Platform
    from pkb.problems.problem import Problem

_TIMED = ("problems", "suite", "size", "m", "n", "dtype", "nproc", "inputs", "modes", "rigor", "again", "timeout")
"""What says which times to take."""
_MODES = [mode_of(name) for name in (EAGER, *COMPILE_OPTIONS)]


def register(app: typer.Typer) -> None:
    app.command("baseline")(baseline)


def baseline(
    context: typer.Context,
    problems: o.OptionalProblems = None,
    suite: o.SuiteName = "parallel",
    size: o.SizeName = "paper",
    m: o.M = None,
    n: o.N = None,
    dtype: o.Dtype = "float32",
    nproc: o.UsualNproc = None,
    inputs: o.Inputs = "sound",
    modes: Annotated[
        str, typer.Option(help=f"The modes to time, with commas: {o.join_names([*_MODES, 'all'])}.")
    ] = "all",
    rigor: o.RigorName = "paper",
    store: o.Store = None,
    again: Annotated[bool, typer.Option("--again", help="Time also modes that are stored already.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="Print the stored times, and whether they are valid on this machine.")
    ] = False,
    published: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Time the references of this checkout of ParallelKernelBench beside ours instead, and store nothing.",
        ),
    ] = None,
    platform: o.PlatformName = "auto",
    timeout: o.Timeout = 60.0,
) -> None:
    """Time references, eager and under torch.compile, and store the times by hardware and software.

    `pkb eval --baselines all --reuse-baselines` reads them. Modes that are stored already are not timed again.

    Example: pkb baseline level1 --suite kernelbench --dtype float32 --store baselines
    """
    from pkb.judge.timing.baseline_store import find_default_store

    folder = store or find_default_store()
    if listing:
        o.refuse_unused(context, _TIMED, "with --list, which prints all that is stored")
        return _print_store(folder, platform)
    if problems is None:
        raise UsageError("name problems, for example `all`, or print the stored times with --list")
    start_nursery()
    from pkb.judge.judge import Judge
    from pkb.problems.suite import find_suite

    chosen, wanted, enough = find_suite(suite).select(problems), parse_modes(modes), find_rigor(rigor)
    with Judge(platform, Limits(load_s=timeout, trial_s=timeout)) as judge:
        posed = ProblemSettings(nproc, o.parse_size(context, size, m, n), dtype, inputs=inputs)
        if published:
            raise typer.Exit(0 if _time_beside(judge, chosen, published, posed, enough) else 1)
        setups = [judge.pose(one, posed) for one in chosen]
        o.prepare_folder(folder)
        _announce(setups, wanted, judge.platform)
        try:
            failed = 0
            for number, setup in enumerate(setups, start=1):
                print(f"{number} of {len(setups)}: {setup.problem.stem}", file=sys.stderr, flush=True)
                failed += not _time_modes(judge, setup, wanted, enough, folder, again)
        except KeyboardInterrupt:
            exit_interrupted(f"the times so far are in {folder}, no rank left running")
    print(f"{len(setups) - failed} of {len(setups)} references timed; times in {folder}")
    raise typer.Exit(1 if failed else 0)


def _time_beside(
    judge: "Judge", problems: "list[Problem]", checkout: Path, posed: ProblemSettings, rigor: Rigor
) -> bool:
    from pkb.cli._published_times import time_published

    try:
        return time_published(judge, problems, checkout, posed, rigor)
    except KeyboardInterrupt:
        exit_interrupted("the ratios so far are above, no rank left running")


def _announce(setups: "list[Setup]", modes: list[str], platform: "Platform") -> None:
    """Say on stderr what is about to be timed, and how large: at paper size it may take hours."""
    size = setups[0].size
    name = next((name for name, known in setups[0].problem.sizes.items() if known == size), str(size))
    shown = ", ".join(map(mode_of, modes))
    print(f"timing {len(setups)} references at size {name} on {platform.name}, each {shown}", file=sys.stderr)
    if not platform.times_are_comparable:
        print(
            f"{platform.name} gives CPU times, which say nothing about a GPU, and sizes for GPUs take it long; "
            "--size tiny is quick",
            file=sys.stderr,
            flush=True,
        )


def _time_modes(judge: "Judge", setup: "Setup", modes: list[str], rigor: Rigor, store: Path, again: bool) -> bool:
    """Time the missing modes, and store each as soon as it is timed. Return whether the reference can be timed."""
    from pkb.failure import Failure
    from pkb.judge.timing.baseline_store import describe_times, read_times
    from pkb.runs import Damage

    here = describe_times(setup, judge.platform)
    found = read_times(here.find_path(store))
    if isinstance(found, Damage):
        print(f"damaged, timed again: {found}")
    kept = found if found and not isinstance(found, Damage) and not found.list_differences(here) else here
    missing = modes if again else kept.list_missing(modes, rigor.name)
    if not missing:
        print(f"{setup.problem.stem}  stored already")
    try:
        for mode, times in judge.time_reference(setup, missing, rigor):
            kept = kept.add_mode(mode, times)
            kept.save(store)
            print(
                f"{setup.problem.stem}  {mode}  {_describe_times(times, kept.environment.comparable_times)}", flush=True
            )
    except Failure as failure:
        print(f"{setup.problem.stem}  cannot be timed: {failure.reason}", flush=True)
        return False
    return True


def _describe_times(times: dict[str, Any], comparable: bool) -> str:
    if "failed" in times:
        return f"failed: {times['failed']}"
    clock = "" if comparable else " (CPU times)"
    low, high = times["interval"]
    line = f"{times['us']:.4g} us ({low:.4g}-{high:.4g}){clock}"
    if "over_eager" not in times:
        return line
    over = times["over_eager"]
    speed = f"{format_speedup(over['speedup'], *over['interval'])} as fast as eager"
    return f"{line}, {speed}, compiled in {times['compile_s']:.1f} s"


def _print_store(store: Path, platform: str) -> None:
    from pkb.cli._terminal import print_columns
    from pkb.judge.timing.baseline_store import read_store
    from pkb.platforms import find_platform

    found, damaged = read_store(store)
    here = find_platform(platform)
    if found:
        headings = ("problem", "size", "dtype", "ranks", "modes", "hardware", "timed", "valid here")
        print_columns(headings, (), [_format_row(one, here) for one in found])
    else:
        print(f"nothing is stored in {store}; `pkb baseline PROBLEMS` times references")
    print_skipped(damaged)


def _format_row(one: "StoredTimes", here: "Platform") -> list[str]:
    timed = [mode_of(mode) for mode, times in one.modes.items() if "failed" not in times]
    when = max((times["when"] for times in one.modes.values()), default="")[:10]
    posed = [one.posed[name] for name in ("size", "dtype", "world")]
    clock = "" if one.environment.comparable_times else " (CPU times)"
    return [one.problem, *posed, " ".join(timed), one.machine["hardware"] + clock, when, _describe_validity(one, here)]


def _describe_validity(one: "StoredTimes", here: "Platform") -> str:
    """Return `yes`, or in what the machine of the times differs from this one."""
    from pkb.judge.timing.baseline_store import describe_machine

    differences = one.list_differences(replace(one, machine=describe_machine(here, int(one.posed["world"]))))
    return ", ".join(differences) or "yes"
