"""The part of `pkb lint` that tests problems with mutants of their references."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pkb.errors import UsageError
from pkb.settings import ProblemSettings

if TYPE_CHECKING:
    from pkb.judge.judge import Judge
    from pkb.judge.setup.setup import Setup
    from pkb.problems.problem import Problem
    from pkb.tools.mutation.campaign import SetupFindings

WORLDS, DTYPES = (2, 4), ("bfloat16", "float32")
"""What a problem's mutants are judged with, the weakest first: values coincide the most in bfloat16."""


@dataclass(frozen=True)
class MutationOptions:
    """How mutants are judged, and what is printed."""

    nproc: int | None
    dtypes: Sequence[str]
    trials: int | None
    verbose: bool
    markdown: bool
    as_json: bool
    out: Path | None

    @property
    def is_usual(self) -> bool:
        """Whether nothing was left out, so that a declaration that excuses nothing is a stale one."""
        return self.nproc is None and not self.dtypes and self.trials is None


def mutate_problems(judge: "Judge", problems: "Sequence[Problem]", options: MutationOptions) -> None:
    """Judge the mutants of problems, print what became of them, and exit with 1 if one survived."""
    found: list[SetupFindings] = []
    stale = 0
    if options.markdown:
        _print_head()
    for problem in problems:
        own = [_mutate_setup(judge, setup, options) for setup in _list_setups(judge, problem, options)]
        found += own
        stale += _print_stale(problem, own) if options.is_usual else 0
    if not found:
        raise UsageError("nothing was tried: none of these problems can be posed with these options")
    if not options.as_json:
        _print_sum(found, stale)
    raise typer.Exit(1 if stale or any(one.list_survivors() for one in found) else 0)


def _list_setups(judge: "Judge", problem: "Problem", options: MutationOptions) -> "list[Setup]":
    worlds = [options.nproc] if options.nproc else [1] if problem.builds else WORLDS
    dtypes = options.dtypes or (["float32"] if problem.builds else DTYPES)
    setups = []
    for dtype in dtypes:
        for world in worlds:
            settings = ProblemSettings(nproc=world, dtype=dtype, trials=options.trials)
            try:
                setups.append(judge.pose(problem, settings))
            except UsageError as error:
                print(f"pkb: {error}", file=sys.stderr)
    return setups


def _mutate_setup(judge: "Judge", setup: "Setup", options: MutationOptions) -> "SetupFindings":
    from pkb.failure import Failure
    from pkb.tools.mutation.campaign import append_findings, describe_failure, mutate_setup

    found = _find_earlier(setup, options.out)
    if found is None:
        try:
            found = mutate_setup(judge, setup, _show_progress(setup))
        except Failure as failure:
            # It stays open: a later run with --out judges this setup again.
            found = describe_failure(setup, failure)
        else:
            if options.out:
                append_findings(options.out, found)
    _print_findings(found, options)
    return found


def _find_earlier(setup: "Setup", out: Path | None) -> "SetupFindings | None":
    """Return what an earlier run wrote about this setup, if nothing that decides about its mutants has changed."""
    from pkb.tools.mutation.campaign import compute_digest, read_findings
    from pkb.tools.mutation.mutants import derive_mutants

    earlier = read_findings(out).get((setup.problem.stem, setup.dtype, setup.world)) if out else None
    if earlier is None or earlier.digest != compute_digest(setup.problem, derive_mutants(setup.problem)):
        return None
    return earlier


def _show_progress(setup: "Setup"):  # type: ignore[no-untyped-def]
    place = f"{setup.problem.stem} {setup.dtype} {setup.world} ranks"

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{place}: {done} of {total}", end="\r\x1b[K" if done == total else "", file=sys.stderr, flush=True)

    return show


def _print_findings(found: "SetupFindings", options: MutationOptions) -> None:
    from pkb.tools.mutation.campaign import count_outcomes

    if options.as_json:
        print(json.dumps(asdict(found)), flush=True)
        return
    if options.markdown:
        _print_row(found)
        return
    counts = ", ".join(f"{count} {outcome}" for outcome, count in count_outcomes([found]))
    place = f"{found.problem}  {found.dtype}  {found.world} ranks"
    print(f"{place}: {len(found.findings)} mutants, {counts} ({found.seconds:.0f} s)", flush=True)
    for finding in found.findings:
        if finding.survived or options.verbose:
            print(f"    {finding.outcome} [{finding.operator}] {finding.mutant}\n        {finding.detail}", flush=True)


def _print_head() -> None:
    from pkb.tools.mutation.campaign import OUTCOMES

    print(f"| problem | ranks | dtype | mutants | {' | '.join(OUTCOMES).lower()} |")
    print(f"|---|---:|---|---:|{'---:|' * len(OUTCOMES)}")


def _print_row(found: "SetupFindings") -> None:
    from pkb.tools.mutation.campaign import OUTCOMES

    cells = [found.problem, found.world, found.dtype, len(found.findings), *map(found.count, OUTCOMES)]
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _print_stale(problem: "Problem", found: "list[SetupFindings]") -> int:
    from pkb.tools.mutation.campaign import list_stale

    stale = list_stale(problem, found)
    for key in stale:
        words = f"declares a mutant equivalent that did not survive; remove {key!r} from EQUIVALENT"
        print(f"pkb: STALE: {problem.path} {words}", file=sys.stderr, flush=True)
    return len(stale)


def _print_sum(found: "list[SetupFindings]", stale: int) -> None:
    from pkb.tools.mutation.campaign import count_outcomes

    counts = ", ".join(f"{count} {outcome}" for outcome, count in count_outcomes(found))
    mutants, seconds = sum(len(one.findings) for one in found), sum(one.seconds for one in found)
    rest = f", {stale} stale declarations" if stale else ""
    print(f"\nIn all: {mutants} mutants, {counts}{rest}; {seconds / 60:.1f} minutes.")
