"""`pkb dryrun`: call a candidate once and print what it returns, without judging it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.base.printable import clean_lines
from pkb.cli import _options as o
from pkb.cli._messages import exit_interrupted
from pkb.judge.worlds.prestart import start_nursery
from pkb.settings import ProblemSettings

if TYPE_CHECKING:
    from pkb.failure import Failure
    from pkb.judge.profiling.ncu import Ncu
    from pkb.judge.profiling.trace import Profile


def register(app: typer.Typer) -> None:
    app.command("dryrun")(dryrun)


def dryrun(
    context: typer.Context,
    problem: o.ProblemName,
    candidate: Annotated[str, typer.Option(help="The candidate's file, or `reference` for the problem's own source.")],
    suite: o.SuiteName = "parallel",
    nproc: o.UsualNproc = None,
    dtype: o.Dtype = "float32",
    size: o.UsualSize = None,
    m: o.M = None,
    n: o.N = None,
    platform: o.PlatformName = "auto",
    sandbox: o.SandboxMode = "auto",
    timeout: o.Timeout = 60.0,
    build_timeout: o.BuildTimeout = 300.0,
    profile: o.Profile = False,
    profiler: o.Profiler = None,
    out: Annotated[Path, typer.Option(help="Folder for the profiler's files.")] = Path("traces"),
) -> None:
    """Run a candidate once on every rank and print what it returns; with --profile, print where its time goes.

    Example: pkb dryrun 13 --candidate my.py --profile --out traces
    """
    start_nursery()
    from pkb.candidate import Candidate
    from pkb.cli._terminal import format_counters
    from pkb.judge.judge import Judge
    from pkb.problems.suite import find_suite
    from pkb.settings import Limits
    from pkb.tools.dryrun import dry_run

    shape = o.parse_size(context, size, m, n)
    found, chosen = find_suite(suite).load(problem), o.find_profiler(profile, profiler)
    one = Candidate.reference(found) if candidate == "reference" else Candidate.read(Path(candidate))
    if chosen is None:
        o.refuse_unused(context, ["out"], "without --profile, whose files it takes")
    else:
        o.prepare_folder(out)
    ncu = _make_ncu(out, platform, nproc or found.default_world) if chosen == "ncu" else None
    try:
        limits = Limits(build_s=build_timeout, load_s=timeout, trial_s=timeout)
        # ncu attaches to the ranks that it starts, which a sandbox would prevent.
        with Judge(platform, limits, "off" if ncu else sandbox, ncu.make_wrapper() if ncu else ()) as judge:
            setup = judge.pose(found, ProblemSettings(nproc=nproc, size=shape, dtype=dtype, trials=1, calls=1))
            seen = dry_run(judge, setup, one, chosen)
    except KeyboardInterrupt:
        exit_interrupted("no rank left running")
    for rank, text in enumerate(seen.printed):
        # A candidate's words: each line says whose it is.
        print(*(f"rank {rank} printed: {line}\n" for line in clean_lines(text).splitlines()), sep="", end="")
    for rank, lines in enumerate(seen.ranks):
        print(f"rank {rank}", *lines, sep="\n  ")
    if seen.failure:
        _print_failure(seen.failure, ncu)
        raise typer.Exit(1)
    if seen.profile:
        _print_profile(seen.profile, out / "trace.json")
    if ncu:
        print(*format_counters(ncu.read_kernels()), f"report in {ncu.report} (open it with ncu-ui)", sep="\n")


def _make_ncu(folder: Path, platform: str, nproc: int) -> "Ncu":
    from pkb.judge.profiling.ncu import Ncu, check_usable
    from pkb.platforms import find_platform

    check_usable(find_platform(platform), nproc)
    return Ncu(folder)


def _print_failure(failure: "Failure", ncu: "Ncu | None") -> None:
    evidence = failure.evidence
    stacks = [f"rank {rank} at {frame}" for rank, stack in evidence.stacks.items() for frame in stack]
    print(f"{failure.verdict}: {failure.reason}", *(evidence.errors or evidence.traceback or stacks), sep="\n  ")
    if ncu and evidence.check == "nursery":
        print(f"  ncu: {ncu.explain_failure()}")


def _print_profile(profile: "Profile", path: Path) -> None:
    from pkb.cli._terminal import format_profile

    print(*format_profile(profile.summary), sep="\n")
    if profile.trace is None:
        raise typer.Exit(1)
    profile.write(path)
    print(f"trace in {path} (open it at ui.perfetto.dev or in chrome://tracing)")
