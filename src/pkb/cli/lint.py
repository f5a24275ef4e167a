"""`pkb lint`: are the problems strong enough to judge by?"""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import options as o
from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.judge.lint import Finding


def register(app: typer.Typer) -> None:
    app.command("lint")(lint)


def lint(
    problems: o.Problems,
    suite: o.SuiteFolder = None,
    nproc: o.Nproc = 4,
    dtype: Annotated[str, typer.Option(help="One or more, with commas.")] = "float32,bfloat16",
    trials: o.Trials = 5,
    timeout: o.Timeout = 10.0,
    platform: o.PlatformName = "auto",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="How each wrong variant was rejected.")] = False,
    as_json: o.Json = False,
) -> None:
    """Plant faults in a problem's reference: every wrong variant must be rejected, the right one must pass.

    Example: pkb lint 13 --nproc 4 --verbose
    """
    from pkb.judge import Judge, Limits
    from pkb.judge.failure import Failure
    from pkb.judge.lint import lint as findings_of

    bad = 0
    with Judge(platform, Limits(load_s=timeout, trial_s=timeout)) as judge:
        for problem in o.chosen_suite(suite).select(problems):
            for name in dtype.split(","):
                try:
                    setup = judge.pose(problem, nproc=nproc, dtype=name.strip(), trials=trials)
                except UsageError as error:
                    print(f"pkb: {error}", file=sys.stderr)
                    continue
                try:
                    findings = list(findings_of(judge, setup))
                except Failure as failure:
                    print(f"{problem.stem}  {name}: {failure.verdict}: {failure.reason}", flush=True)
                    bad += 1
                    continue
                bad += sum(finding.bad for finding in findings)
                _print(findings, verbose, as_json)
    raise typer.Exit(1 if bad else 0)


def _print(findings: "list[Finding]", verbose: bool, as_json: bool) -> None:
    if as_json:
        for finding in findings:
            print(json.dumps(asdict(finding)), flush=True)
        return
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.outcome] = counts.get(finding.outcome, 0) + 1
    first = findings[0]
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    print(f"{first.problem}  {first.dtype}  {first.world} ranks: {summary}", flush=True)
    for finding in findings:
        if verbose or finding.bad:
            print(f"    {finding.variant}: {finding.outcome}  {finding.detail}", flush=True)
