"""`pkb redteam`: test whether the judge catches all known ways to cheat."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import _options as o
from pkb.errors import UsageError
from pkb.judge.worlds.prestart import start_nursery

if TYPE_CHECKING:
    from pkb.judge.judge import Judge
    from pkb.settings import Rigor
    from pkb.tools.redteam import Attempt, StagedAttempt

_TABLE = "| row | file | tries | screen | got |\n|---|---|---|---|---|"


def register(app: typer.Typer) -> None:
    app.command("redteam")(redteam)


def redteam(
    context: typer.Context,
    rows: Annotated[
        list[str] | None, typer.Argument(metavar="ROW", help="Rows (5 m3) or names (05*).", show_default="all")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Folder of the attempts.", show_default="the shipped ones")
    ] = None,
    kernels: Annotated[
        Path | None,
        typer.Option(help="Folder of honest kernels, which must pass.", show_default="the shipped Triton kernels"),
    ] = None,
    no_kernels: Annotated[bool, typer.Option("--no-kernels", help="Judge only the attempts.")] = False,
    rigor: Annotated[
        str | None, typer.Option(help="Stage only the timed attempts, with this rigor: quick or paper.")
    ] = None,
    platform: o.PlatformName = "auto",
    out: o.Out = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the last table of docs/redteam.md.")] = False,
    as_json: o.Json = False,
) -> None:
    """Judge attempts to cheat in all known ways. Exit code 0 if all are caught and every honest kernel passes.

    Example: pkb redteam 5 m3 --no-kernels
    """
    if no_kernels:
        o.refuse_unused(context, ["kernels"], "with --no-kernels")
    if markdown:
        o.refuse_unused(context, ["as_json"], "with --markdown")
    if out:
        o.prepare_folder(out)
    start_nursery()
    from pkb.base.paths import list_attempt_folders
    from pkb.judge.judge import Judge
    from pkb.platforms import find_platform
    from pkb.settings import find_rigor
    from pkb.tools.redteam import choose_limits, list_honest_kernels, read_attempts, read_honest_examples

    folder = folder or _find_shipped(list_attempt_folders(), "--folder")
    chosen = [attempt for attempt in read_attempts(folder, rows or ()) if attempt.timed or not rigor]
    timed_by = find_rigor(rigor) if rigor else None
    must_pass = [] if no_kernels else list_honest_kernels(kernels or _find_triton_kernels())
    examples = [] if no_kernels else read_honest_examples(folder)
    with Judge(platform, choose_limits(find_platform(platform))) as judge:
        style = "json" if as_json else "markdown" if markdown else "lines"
        findings = _stage_all(judge, chosen, style, out, timed_by)
        judged, alarms = _judge_honest_kernels(judge, [f.attempt for f in findings], must_pass, examples)
    missed = sum(not finding.is_caught for finding in findings)
    print(
        f"{len({f.attempt.row for f in findings})} rows, {len(findings)} attempts: {len(findings) - missed} caught, "
        f"{missed} missed; honest kernels: {judged} judged, {alarms} false alarms",
        file=sys.stderr if as_json or markdown else sys.stdout,
    )
    raise typer.Exit(1 if missed or alarms else 0)


def _find_triton_kernels() -> Path:
    from pkb.base.paths import list_solution_folders

    return _find_shipped(list_solution_folders(), "--kernels") / "triton"


def _find_shipped(folders: list[Path], option: str) -> Path:
    if not folders:
        raise UsageError(
            f"pkb was installed without its attempts and kernels; name a folder of a checkout with {option}"
        )
    return folders[0]


def _stage_all(
    judge: "Judge", chosen: "Sequence[Attempt]", style: str, run: Path | None, rigor: "Rigor | None"
) -> "list[StagedAttempt]":
    from pkb.tools.redteam import stage

    show = {"json": _format_json, "markdown": _format_markdown, "lines": _format_line}[style]
    findings = []
    if style == "markdown":
        print(_TABLE)
    for attempt in chosen:
        if obstacle := attempt.find_obstacle(judge.platform):
            print(f"{_format_label(attempt)}skipped: {obstacle}", file=sys.stdout if style == "lines" else sys.stderr)
            continue
        for screened in attempt.list_modes():
            findings.append(stage(judge, attempt, screened, run, rigor))
            print(show(findings[-1]), flush=True)
    return findings


def _judge_honest_kernels(
    judge: "Judge", staged: "list[Attempt]", kernels: list[Path], examples: "list[Attempt]"
) -> tuple[int, int]:
    """Return how many honest kernels were judged, and how many of them did not pass."""
    from pkb.tools.redteam import judge_honest

    records = list(judge_honest(judge, staged, kernels, examples)) if kernels else []
    alarms = [record for record in records if not record.correct]
    for record in alarms:
        print(f"FALSE ALARM  {record.problem}  {record.candidate.name}  {record.reason}", file=sys.stderr)
    return len(records), len(alarms)


def _format_label(attempt: "Attempt") -> str:
    return f"{attempt.row:>3}  {attempt.path.stem:<36}"


def _format_line(finding: "StagedAttempt") -> str:
    screen, word = "" if finding.screened else "unscreened", "caught" if finding.is_caught else "MISSED"
    line = f"{_format_label(finding.attempt)}{screen:<12}{word}  {finding.outcome}  ({finding.seconds:.1f} s)"
    if finding.is_caught:
        return line
    warnings = f", and a warning of {', '.join(finding.missing_warnings)}" if finding.missing_warnings else ""
    return f"{line}\n     expected {_format_expected(finding)}{warnings}: {finding.reason[:300]!r}"


def _format_markdown(finding: "StagedAttempt") -> str:
    attempt, screen = finding.attempt, "on" if finding.screened else "off"
    got = f"{finding.outcome}" if finding.is_caught else f"**missed:** {finding.outcome}"
    return f"| {attempt.row.upper()} | `{attempt.path.stem}` | {attempt.tries} | {screen} | {got} |"


def _format_json(finding: "StagedAttempt") -> str:
    attempt = finding.attempt
    facts = {"row": attempt.row, "file": attempt.path.name, "tries": attempt.tries, "screened": finding.screened}
    outcome = {"expected": _format_expected(finding), "got": str(finding.outcome), "caught": finding.is_caught}
    return json.dumps(facts | outcome | {"reason": finding.reason, "seconds": round(finding.seconds, 2)})


def _format_expected(finding: "StagedAttempt") -> str:
    return " or ".join(map(str, finding.attempt.find_expected(finding.screened)))
