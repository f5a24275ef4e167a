"""`pkb lint`: are the problems strong enough to judge by?"""

import json
import shlex
import sys
from collections import Counter
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import options as o
from pkb.errors import UsageError
from pkb.settings import ProblemSettings

if TYPE_CHECKING:
    from pkb.judge.judge import Judge
    from pkb.judge.setup.setup import Setup
    from pkb.tools.lint import Finding

_PAGE = """# How strong the problems are

Printed by `{command}` on the `{platform}` platform, {today}.
Each cell counts the wrong variants of a problem that the judge's comparison rejected; *no effect* are faults that
change nothing there (sums know no order of ranks, integers no float8), *equivalent* are those that compute the same
function, with the reason in the file, *degenerate* those that pass because a published function is constant. *Right* is
a variant that computes the same otherwise (sums in another order; of a model, no library of a vendor): it must pass.

| problem | ranks | dtype | {outcomes} | right |
|---|---:|---|{columns}---|
"""
_WRONG = ("rejected", "no effect", "equivalent", "degenerate", "SURVIVED")
"""What becomes of a wrong variant."""


def register(app: typer.Typer) -> None:
    app.command("lint")(lint)


def lint(
    problems: o.Problems,
    suite: o.SuiteName = "parallel",
    nproc: o.UsualNproc = None,
    dtype: Annotated[
        str | None, typer.Option(help="One or more, with commas; float32,bfloat16 if none is given, of models float32.")
    ] = None,
    trials: o.UsualTrials = None,
    timeout: o.Timeout = 10.0,
    platform: o.PlatformName = "auto",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="How each wrong variant was rejected.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As the pages docs/*strength.md.")] = False,
    as_json: o.Json = False,
) -> None:
    """Plant faults in a problem's reference: every wrong variant must be rejected, the right one must pass.

    Example: pkb lint 13 --nproc 4 --verbose
    """
    from pkb.judge.judge import Judge
    from pkb.problems.problem import dtype_named
    from pkb.settings import Limits

    dtypes = [name.strip() for name in dtype.split(",")] if dtype else []
    for name in dtypes:
        dtype_named(name)
    found: list[Finding] = []
    with Judge(platform, Limits(load_s=timeout, trial_s=timeout)) as judge:
        if markdown:
            _print_head(judge.platform.name)
        for problem in o.chosen_suite(suite).select(problems):
            for name in dtypes or (["float32"] if problem.builds else ["float32", "bfloat16"]):
                try:
                    setup = judge.pose(problem, ProblemSettings(nproc=nproc, dtype=name, trials=trials))
                except UsageError as error:
                    print(f"pkb: {error}", file=sys.stderr)
                    continue
                findings = _findings(judge, setup)
                _print(findings, verbose, markdown, as_json)
                found += findings
    if not found:
        raise UsageError("nothing was tried: none of these problems can be posed like that; choose another --nproc")
    if not as_json:
        print(f"\nIn all: {_counted(found)}.")
    raise typer.Exit(1 if any(finding.bad for finding in found) else 0)


def _findings(judge: "Judge", setup: "Setup") -> "list[Finding]":
    from pkb.failure import Failure
    from pkb.tools.lint import SURVIVED, Finding
    from pkb.tools.lint import lint as findings_of

    try:
        return list(findings_of(judge, setup))
    except Failure as failure:
        # A reference that does not run cannot reject anything.
        detail = f"{failure.verdict}: {failure.reason}"
        return [Finding(setup.problem.stem, setup.dtype, setup.world, "reference", SURVIVED, detail)]


def _print_head(platform: str) -> None:
    table = {"outcomes": " | ".join(_WRONG).lower(), "columns": "---:|" * len(_WRONG)}
    command = shlex.join(["pkb", *sys.argv[1:]])
    print(_PAGE.format(command=command, platform=platform, today=date.today(), **table), end="", flush=True)


def _counted(findings: "list[Finding]") -> str:
    counts = Counter(finding.outcome for finding in findings)
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def _print(findings: "list[Finding]", verbose: bool, markdown: bool, as_json: bool) -> None:
    first = findings[0]
    if as_json:
        for finding in findings:
            print(json.dumps(asdict(finding)), flush=True)
        return
    if markdown:
        counts = Counter(finding.outcome for finding in findings)
        cells = [counts[key] for key in _WRONG]
        right = "passed" if counts["passed"] else "FALSE ALARM"
        print("|", " | ".join(map(str, (first.problem, first.world, first.dtype, *cells, right))), "|", flush=True)
        return
    print(f"{first.problem}  {first.dtype}  {first.world} ranks: {_counted(findings)}", flush=True)
    for finding in findings:
        if verbose or finding.bad:
            print(f"    {finding.variant}: {finding.outcome}  {finding.detail}", flush=True)
