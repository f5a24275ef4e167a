"""`pkb redteam`: do the ways to cheat that we know still fail?"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import options as o
from pkb.judge.worlds.prestart import start_nursery

if TYPE_CHECKING:
    from pkb.judge.judge import Judge
    from pkb.tools.redteam import Attempt, Finding

_TABLE = "| row | file | tries | screen | got |\n|---|---|---|---|---|"


def register(app: typer.Typer) -> None:
    app.command("redteam")(redteam)


def redteam(
    rows: Annotated[
        list[str] | None, typer.Argument(metavar="[ROW]...", help="Rows (5 m3) or names (05*); all unless given.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where the attempts are.")] = Path("redteam"),
    kernels: Annotated[Path, typer.Option(help="Kernels that must pass.")] = Path("solutions/triton"),
    no_kernels: Annotated[bool, typer.Option("--no-kernels", help="Judge only the attempts.")] = False,
    platform: o.PlatformName = "auto",
    out: o.Out = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The last table of docs/threat-model.md.")] = False,
    as_json: o.Json = False,
) -> None:
    """Try to cheat in every way that we know. Exit code 0 only if all of it is caught, and nothing honest is.

    Example: pkb redteam 5 m3 --no-kernels
    """
    start_nursery()
    from pkb.judge.judge import Judge
    from pkb.platforms import platform_named
    from pkb.tools.redteam import attempts, honest_kernels, limits_on

    chosen = attempts(folder, rows or ())
    must_pass = [] if no_kernels else honest_kernels(kernels)
    with Judge(platform, limits_on(platform_named(platform))) as judge:
        findings = _staged(judge, chosen, "json" if as_json else "markdown" if markdown else "lines", out)
        judged, alarms = _false_alarms(judge, [f.attempt for f in findings], must_pass)
    missed = sum(not finding.caught for finding in findings)
    print(
        f"{len({f.attempt.row for f in findings})} rows, {len(findings)} attempts: {len(findings) - missed} caught, "
        f"{missed} missed; honest kernels: {judged} judged, {alarms} false alarms",
        file=sys.stderr if as_json or markdown else sys.stdout,
    )
    raise typer.Exit(1 if missed or alarms else 0)


def _staged(judge: "Judge", chosen: "Sequence[Attempt]", style: str, run: Path | None) -> "list[Finding]":
    from pkb.tools.redteam import stage

    show = {"json": _as_json, "markdown": _as_markdown, "lines": _as_line}[style]
    findings = []
    if style == "markdown":
        print(_TABLE)
    for attempt in chosen:
        if obstacle := attempt.obstacle(judge.platform):
            print(f"{_label(attempt)}skipped: {obstacle}", file=sys.stdout if style == "lines" else sys.stderr)
            continue
        for screened in attempt.modes():
            findings.append(stage(judge, attempt, screened, run))
            print(show(findings[-1]), flush=True)
    return findings


def _false_alarms(judge: "Judge", staged: "list[Attempt]", kernels: list[Path]) -> tuple[int, int]:
    """How many honest ones were judged, and how many of those did not pass."""
    from pkb.tools.redteam import honest

    records = list(honest(judge, staged, kernels)) if kernels else []
    alarms = [record for record in records if not record.correct]
    for record in alarms:
        print(f"FALSE ALARM  {record.problem}  {record.candidate['name']}  {record.reason}", file=sys.stderr)
    return len(records), len(alarms)


def _label(attempt: "Attempt") -> str:
    return f"{attempt.row:>3}  {attempt.path.stem:<36}"


def _as_line(finding: "Finding") -> str:
    screen, word = "" if finding.screened else "unscreened", "caught" if finding.caught else "MISSED"
    line = f"{_label(finding.attempt)}{screen:<12}{word}  {finding.got}  ({finding.seconds:.1f} s)"
    if finding.caught:
        return line
    unsaid = f", and a warning of {', '.join(finding.unsaid)}" if finding.unsaid else ""
    return f"{line}\n     expected {_expected(finding)}{unsaid}: {finding.reason[:300]!r}"


def _as_markdown(finding: "Finding") -> str:
    attempt, screen = finding.attempt, "on" if finding.screened else "off"
    got = f"{finding.got}" if finding.caught else f"**missed:** {finding.got}"
    return f"| {attempt.row.upper()} | `{attempt.path.stem}` | {attempt.tries} | {screen} | {got} |"


def _as_json(finding: "Finding") -> str:
    attempt = finding.attempt
    facts = {"row": attempt.row, "file": attempt.path.name, "tries": attempt.tries, "screened": finding.screened}
    outcome = {"expected": _expected(finding), "got": str(finding.got), "caught": finding.caught}
    return json.dumps(facts | outcome | {"reason": finding.reason, "seconds": round(finding.seconds, 2)})


def _expected(finding: "Finding") -> str:
    return " or ".join(map(str, finding.attempt.expected(finding.screened)))
