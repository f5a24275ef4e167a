"""`pkb dryrun`: call a candidate once and show what it returns, without judging it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import options as o
from pkb.cli.terminal import kernel_lines, profile_lines
from pkb.judge.worlds.prestart import start_nursery
from pkb.settings import ProblemSettings

if TYPE_CHECKING:
    from pkb.judge.profiling.ncu import Ncu
    from pkb.judge.profiling.trace import Profile


def register(app: typer.Typer) -> None:
    app.command("dryrun")(dryrun)


def dryrun(
    problem: Annotated[str, typer.Argument(help="A number or name: 13, gemm_allreduce.")],
    candidate: Annotated[str, typer.Option(help="The candidate's file, or `reference`.")],
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
    profile: o.Profiler = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for what --profile leaves; `traces` if none is given.")
    ] = None,
) -> None:
    """Run a candidate once on every rank and print what it returns; with --profile, say where its time goes.

    Example: pkb dryrun 13 --candidate my.py --profile --out traces
    """
    start_nursery()
    from pkb.candidate import Candidate
    from pkb.failure import Failure
    from pkb.judge.judge import Judge
    from pkb.settings import Limits
    from pkb.tools.dryrun import dry_run

    found = o.chosen_suite(suite).load(problem)
    one = Candidate.reference(found) if candidate == "reference" else Candidate.read(Path(candidate))
    folder = out or Path("traces")
    ncu = _ncu(folder, platform, nproc or found.usual_world) if o.chosen_profiler(profile) == "ncu" else None
    try:
        limits = Limits(build_s=build_timeout, load_s=timeout, trial_s=timeout)
        # ncu reaches into the ranks that it starts: they cannot be locked up.
        with Judge(platform, limits, "off" if ncu else sandbox, ncu.wrapper() if ncu else ()) as judge:
            setup = judge.pose(
                found, ProblemSettings(nproc=nproc, size=o.chosen_size(size, m, n), dtype=dtype, trials=1, calls=1)
            )
            seen = dry_run(judge, setup, one, profile)
        for rank, lines in enumerate(seen.ranks):
            print(f"rank {rank}", *lines, sep="\n  ")
        if seen.profile:
            _show(seen.profile, folder / "trace.json")
        if ncu:
            print(*kernel_lines(ncu.kernels()), f"report in {ncu.report} (open it with ncu-ui)", sep="\n")
    except Failure as failure:
        details = failure.evidence.get("errors") or failure.evidence.get("traceback", [])
        print(f"{failure.verdict}: {failure.reason}", *details, sep="\n  ")
        if ncu and failure.evidence.get("check") == "nursery":
            print(f"  ncu: {ncu.trouble()}")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("\ninterrupted: no rank left running", file=sys.stderr)
        raise typer.Exit(130) from None


def _ncu(folder: Path, platform: str, nproc: int) -> "Ncu":
    from pkb.judge.profiling.ncu import Ncu, refuse
    from pkb.platforms import platform_named

    refuse(platform_named(platform), nproc)
    return Ncu(folder)


def _show(profile: "Profile", path: Path) -> None:
    print(*profile_lines(profile.summary), sep="\n")
    if profile.trace is None:
        raise typer.Exit(1)
    profile.write(path)
    print(f"trace in {path} (open it at ui.perfetto.dev or in chrome://tracing)")
