"""`pkb dryrun`: call a candidate once and show what it returns, without judging it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from pkb.cli import options as o


def register(app: typer.Typer) -> None:
    app.command("dryrun")(dryrun)


def dryrun(
    problem: Annotated[str, typer.Argument(help="A number or name: 13, gemm_allreduce.")],
    candidate: Annotated[str, typer.Option(help="The candidate's file, or `reference`.")],
    suite: o.SuiteFolder = None,
    nproc: o.Nproc = 4,
    dtype: o.Dtype = "float32",
    size: o.SizeName = "tiny",
    m: o.M = None,
    n: o.N = None,
    platform: o.PlatformName = "auto",
    sandbox: o.SandboxMode = "auto",
    timeout: o.Timeout = 60.0,
    profile: Annotated[bool, typer.Option("--profile", help="Write a Chrome trace per rank.")] = False,
    out: o.Out = None,
) -> None:
    """Run a candidate once on every rank and print what it returns; with --profile, trace it.

    Example: pkb dryrun 13 --candidate my.py --profile --out traces
    """
    from pkb.candidate import Candidate
    from pkb.judge import Judge, Limits
    from pkb.judge.dryrun import dry_run
    from pkb.judge.failure import Failure

    found = o.chosen_suite(suite).load(problem)
    one = Candidate.reference(found) if candidate == "reference" else Candidate.read(Path(candidate))
    traces = (out or Path("traces")) if profile else None
    with Judge(platform, Limits(load_s=timeout, trial_s=timeout), sandbox) as judge:
        setup = judge.pose(found, nproc=nproc, size=o.chosen_size(size, m, n), dtype=dtype, trials=1, calls=1)
        try:
            ranks = dry_run(judge, setup, one, traces)
        except Failure as failure:
            print(f"{failure.verdict}: {failure.reason}", *failure.evidence.get("traceback", []), sep="\n  ")
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            print("\ninterrupted: no rank left running", file=sys.stderr)
            raise typer.Exit(130) from None
    for rank, lines in enumerate(ranks):
        print(f"rank {rank}", *lines, sep="\n  ")
    if traces:
        print(f"traces in {traces}/rank_*.json (open them in a Chrome trace viewer)")
