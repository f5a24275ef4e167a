"""`pkb list`: list the problems."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.base.printable import clean_line
from pkb.cli import _options as o
from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.problems.problem import Problem

_ROOMY = 120
"""Columns from which a terminal has room for a table with sentences."""
_WORLD, _DTYPE, _HARDWARE = 8, "bfloat16", "h100_8"
_PAGE = f"""# The problems

Printed by `pkb list --markdown`. Work is a lower bound, computed by the `cost` of each problem file: what the rank
with the most work must do at the paper size, with {_WORLD} ranks and {_DTYPE}. The bound is the resource that needs
longest on `{_HARDWARE}`.

| id | name | category | what it does | from | GFLOP | HBM MB | link MB | bound |
|---:|---|---|---|---|---:|---:|---:|---|
"""


def register(app: typer.Typer) -> None:
    app.command("list")(list_problems)


def list_problems(
    context: typer.Context,
    category: Annotated[str | None, typer.Option(help="List only this category.")] = None,
    suite: o.SuiteName = "parallel",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/problems.md.")] = False,
    as_json: o.Json = False,
) -> None:
    """List the problems: number, name, category, world sizes, and what each does.

    Example: pkb list --category 'Tensor Parallel'
    """
    from pkb.problems.suite import find_suite

    chosen = find_suite(suite)
    found = chosen.read_problems(category)
    if not found:
        raise UsageError(f"no category {category!r}; there are {', '.join(chosen.categories())}")
    if markdown:
        o.refuse_unused(context, ["as_json"], "with --markdown")
        print(_PAGE + "\n".join(map(_format_row, found)))
    elif as_json:
        print(json.dumps([_collect_facts(problem) for problem in found], indent=1))
    else:
        _print_problems([_collect_facts(problem) for problem in found])


def _collect_facts(problem: "Problem") -> dict[str, Any]:
    return {
        "id": problem.id,
        "key": problem.key,
        "name": problem.name,
        "category": problem.category,
        "title": f"{problem.title} (degenerate: {problem.degenerate})" if problem.degenerate else problem.title,
        "worlds": problem.list_worlds(),
        "sizes": {name: [*size.describe().values()] for name, size in problem.sizes.items()},
        "degenerate": problem.degenerate,
    }


def _format_row(problem: "Problem") -> str:
    from pkb.hardware.roofline import Hardware

    hardware = Hardware.load(_HARDWARE)
    costs = problem.rank_costs("paper", _DTYPE, _WORLD)
    most = max(costs, key=lambda cost: max(hardware.compute_times(cost, _DTYPE).values()))
    link = max(most.link.egress, most.link.ingress)
    numbers = [f"{value:.3g}" for value in (most.flops / 1e9, most.hbm / 1e6, link / 1e6)]
    text = [str(problem.id), problem.name, problem.category, problem.title, problem.source]
    cells = [clean_line(cell).replace("|", r"\|") for cell in text] + numbers + [hardware.find_bound(most, _DTYPE)]
    return f"| {' | '.join(cells)} |"


def _list_cells(row: dict[str, Any]) -> list[str]:
    return [row["key"], row["name"], row["category"], " ".join(map(str, row["worlds"])), row["title"]]


def _print_problems(rows: list[dict[str, Any]]) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from pkb.cli._terminal import make_console

    console = make_console()
    if console.width >= _ROOMY:
        table = Table(box=None, pad_edge=False)
        table.add_column("id", justify="right", no_wrap=True)
        for heading in ("name", "category", "ranks"):
            table.add_column(heading, no_wrap=True)
        table.add_column("what it does", overflow="fold")
        for row in rows:
            # Text: a person's own problems may have brackets in their words, which are no markup.
            table.add_row(*(Text(clean_line(cell)) for cell in _list_cells(row)))
        console.print(table)
    else:
        for row in rows:
            key, name, category, worlds, title = map(clean_line, _list_cells(row))
            about = Text(f"{category}, ranks {worlds}: {title}", overflow="fold")
            console.print(Text(f"{key}  {name}", "bold", overflow="fold"), Padding(about, (0, 0, 0, 4)), sep="\n")
    count = Counter(row["category"] for row in rows)
    print(clean_line(f"{len(rows)} problems: " + ", ".join(f"{name} {number}" for name, number in count.items())))
