"""`pkb lint`: test whether the judge rejects wrong variants of a problem's reference."""

import json
import shlex
import sys
from collections import Counter
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import _options as o
from pkb.errors import UsageError
from pkb.problems.size import find_dtype_name
from pkb.settings import ProblemSettings

if TYPE_CHECKING:
    from pkb.judge.judge import Judge
    from pkb.judge.setup.setup import Setup
    from pkb.tools.lint import LintFinding

_PAGE = """# How strong the problems are

Printed by `{command}` on the `{platform}` platform, {today}.
Each row counts the wrong variants of one problem. *Rejected*: the judge's comparison found the variant wrong. *No
effect*: the fault changes nothing in this problem (the order of ranks does not matter to a sum, nor float8 to
integers). *Equivalent*: the variant computes the same function; the problem file has the reason. *Degenerate*: the
variant passes because the published function is constant. *Right* is a correct variant that must pass: it sums in
another order or, for a model, uses no vendor library.

| problem | ranks | dtype | {outcomes} | right |
|---|---:|---|{columns}---|
"""
_WRONG = ("rejected", "no effect", "equivalent", "degenerate", "SURVIVED")
"""The outcomes of a wrong variant."""


def register(app: typer.Typer) -> None:
    app.command("lint")(lint)


def lint(
    context: typer.Context,
    problems: o.Problems,
    suite: o.SuiteName = "parallel",
    nproc: o.UsualNproc = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="One or more dtypes, with commas.", show_default="float32,bfloat16; for models float32"),
    ] = None,
    trials: o.UsualTrials = None,
    timeout: o.Timeout = 10.0,
    platform: o.PlatformName = "auto",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print how each wrong variant was rejected.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a page like docs/strength.md.")] = False,
    mutate: Annotated[
        bool, typer.Option("--mutate", help="Judge mutants: the reference with one careless change each.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="With --mutate: a file to write findings to, and to resume from.")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Plant faults in a problem's reference: the judge must reject every wrong variant, and accept the right one.

    With --mutate, the wrong variants are derived from the reference's source, at 2 and 4 ranks.

    Example: pkb lint 13 --nproc 4 --verbose
    """
    from pkb.cli._mutate import MutationOptions, mutate_problems
    from pkb.judge.judge import Judge
    from pkb.problems.suite import find_suite
    from pkb.settings import Limits

    dtypes = [find_dtype_name(name) for name in dtype.split(",")] if dtype else []
    if markdown or as_json:
        o.refuse_unused(context, ["verbose"], "with --markdown or --json")
    if markdown:
        o.refuse_unused(context, ["as_json"], "with --markdown")
    found: list[LintFinding] = []
    with Judge(platform, Limits(load_s=timeout, trial_s=timeout)) as judge:
        if mutate:
            options = MutationOptions(nproc, dtypes, trials, verbose, markdown, as_json, out)
            mutate_problems(judge, find_suite(suite).select(problems), options)
        if markdown:
            _print_head(judge.platform.name, context.obj)
        for problem in find_suite(suite).select(problems):
            for name in dtypes or (["float32"] if problem.builds else ["float32", "bfloat16"]):
                try:
                    setup = judge.pose(problem, ProblemSettings(nproc=nproc, dtype=name, trials=trials))
                except UsageError as error:
                    print(f"pkb: {error}", file=sys.stderr)
                    continue
                findings = _lint_setup(judge, setup)
                _print(findings, verbose, markdown, as_json)
                found += findings
    if not found:
        raise UsageError(
            "nothing was tried: none of these problems can be posed with these options; choose another --nproc"
        )
    if not as_json:
        print(f"\nIn all: {_count_outcomes(found)}.")
    raise typer.Exit(1 if any(finding.is_bad for finding in found) else 0)


def _lint_setup(judge: "Judge", setup: "Setup") -> "list[LintFinding]":
    from pkb.failure import Failure
    from pkb.tools.lint import SURVIVED, LintFinding
    from pkb.tools.lint import lint as lint_setup

    try:
        return list(lint_setup(judge, setup))
    except Failure as failure:
        # A reference that does not run cannot reject anything.
        detail = f"{failure.verdict}: {failure.reason}"
        return [LintFinding(setup.problem.stem, setup.dtype, setup.world, "reference", SURVIVED, detail)]


def _print_head(platform: str, words: list[str]) -> None:
    table = {"outcomes": " | ".join(_WRONG).lower(), "columns": "---:|" * len(_WRONG)}
    command = shlex.join(["pkb", *words])
    print(_PAGE.format(command=command, platform=platform, today=date.today(), **table), end="", flush=True)


def _count_outcomes(findings: "list[LintFinding]") -> str:
    counts = Counter(finding.outcome for finding in findings)
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def _print(findings: "list[LintFinding]", verbose: bool, markdown: bool, as_json: bool) -> None:
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
    print(f"{first.problem}  {first.dtype}  {first.world} ranks: {_count_outcomes(findings)}", flush=True)
    for finding in findings:
        if verbose or finding.is_bad:
            print(f"    {finding.variant}: {finding.outcome}  {finding.detail}", flush=True)
