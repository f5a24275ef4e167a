"""`pkb check`: screen candidates without running them."""

import ast
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.base.foreign_files import SOURCE_BYTES, describe_error, read_named_file
from pkb.base.printable import clean_line
from pkb.cli import _options as o
from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.screen import Rule, ScreenFinding

_PAGE = """# The static screen

Printed by `pkb check --rules --markdown`. Before a candidate runs, the screen reads its source. It follows names
through imports, aliases and constant strings; it reads code in constant strings, and the C++ and CUDA sources that the
candidate compiles. It ignores comments, strings that are never executed, and code that neither `solution` nor the
import of the file reaches.

A candidate that a rule *rejects* does not run; a *warning* is written into the record. In the track `any` a candidate
may use whatever is fastest; in `scratch` it must do communication and matrix products itself. A screen can be deceived,
so the checks at run time do not rely on it: [track-scratch.md](track-scratch.md) says which operators
`scratch` allows when the candidate runs.

| rule | what is found … | what to do instead | any | scratch |
|---|---|---|---|---|
"""


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    context: typer.Context,
    files: Annotated[list[Path] | None, typer.Argument(help="The candidates' files.", metavar="FILE")] = None,
    track: o.TrackName = "any",
    backend: o.BackendName = None,
    rules: Annotated[bool, typer.Option("--rules", help="Print the rules, and check nothing.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="With --rules: print the page docs/screen.md.")] = False,
    as_json: o.Json = False,
) -> None:
    """Screen candidates without running them. Exit code 1 if one is rejected.

    Example: pkb check my_kernel.py --track scratch
    """
    from pkb.backends import find_backend, recognise
    from pkb.screen import Severity, load_rules, screen
    from pkb.settings import find_track

    if rules:
        o.refuse_unused(context, ["files", "track", "backend", "as_json"], "with --rules, which checks nothing")
    else:
        o.refuse_unused(context, ["markdown"], "without --rules")
    if rules:
        _print_rules(list(load_rules().values()), markdown)
        return
    if not files:
        raise UsageError("name the files to check, or print the rules with --rules")
    chosen = find_track(track)
    count: Counter[str] = Counter()
    for file in files:
        source = _read(file)
        if broken := _find_syntax_error(source):
            print(clean_line(f"{file}: cannot be parsed: {broken}"), file=sys.stderr)
            count["broken"] += 1
        for finding in screen(source, find_backend(backend) if backend else recognise(source), chosen):
            count[finding.severity] += 1
            _print(file, finding, as_json)
    if not as_json:
        found = ", ".join(f"{count[severity]} {severity}" for severity in Severity)
        print(f"{len(files)} checked for the track {chosen}: {found}")
    raise typer.Exit(1 if count[Severity.REJECT] or count["broken"] else 0)


def _read(file: Path) -> bytes:
    try:
        return read_named_file(file, SOURCE_BYTES)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {file}: {describe_error(error)}; name a Python file") from error


def _find_syntax_error(source: bytes) -> str | None:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError) as error:
        # It quotes the character that it complains of.
        return clean_line(str(error))
    except (MemoryError, RecursionError):
        # The screen has a rule for sources that are nested too deeply.
        pass
    return None


def _print(file: Path, finding: "ScreenFinding", as_json: bool) -> None:
    if as_json:
        print(json.dumps({"file": str(file), **asdict(finding)}))
    else:
        name = clean_line(str(file))
        print(f"{name}:{finding.line}: {finding.severity} {finding.rule}: {finding.sentence}; {finding.advice}")


def _print_rules(rules: "list[Rule]", markdown: bool) -> None:
    if markdown:
        print(_PAGE + "\n".join(map(_format_row, rules)))
        return
    for rule in rules:
        severities = ", ".join(f"{severity} in {track}" for track, severity in rule.severity.items())
        print(f"{rule.name} ({severities}): {rule.sentence}; {rule.advice}")


def _format_row(rule: "Rule") -> str:
    from pkb.settings import Track

    cells = [f"`{rule.name}`", rule.sentence, rule.advice, *(rule.severity.get(track, "") for track in Track)]
    return f"| {' | '.join(cells)} |"
