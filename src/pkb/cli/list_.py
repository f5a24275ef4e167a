"""`pkb list`: the problems."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.cli import options as o
from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.problems.problem import Problem

_WIDE, _ROOMY = 240, 120
_WORLD, _DTYPE, _HARDWARE = 8, "bfloat16", "h100_8"
_PAGE = f"""# The problems

Printed by `pkb list --markdown`. Work is the most that any rank must do at the paper size, {_WORLD} ranks, {_DTYPE}:
lower bounds, by the files' own `cost`. The bound is the resource that needs longest on `{_HARDWARE}`.

| id | name | category | what it does | from | GFLOP | HBM MB | link MB | bound |
|---:|---|---|---|---|---:|---:|---:|---|
"""


def register(app: typer.Typer) -> None:
    app.command("list")(list_problems)


def list_problems(
    category: Annotated[str | None, typer.Option(help="Only this category.")] = None,
    suite: o.SuiteName = "parallel",
    markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/problems.md.")] = False,
    as_json: o.Json = False,
) -> None:
    """List the problems: number, name, category, world sizes, and what each does.

    Example: pkb list --category 'Tensor Parallel'
    """
    chosen = o.chosen_suite(suite)
    found = chosen.listed(category)
    if not found:
        raise UsageError(f"no category {category!r}; there are {', '.join(chosen.categories())}")
    if markdown:
        print(_PAGE + "\n".join(map(_line, found)))
    elif as_json:
        print(json.dumps([_facts(problem) for problem in found], indent=1))
    else:
        _print_table([_facts(problem) for problem in found])


def _facts(problem: "Problem") -> dict[str, Any]:
    return {
        "id": problem.id,
        "name": problem.name,
        "category": problem.category,
        "title": f"{problem.title} (degenerate: {problem.degenerate})" if problem.degenerate else problem.title,
        "worlds": problem.worlds(),
        "sizes": {name: [*size.facts().values()] for name, size in problem.sizes.items()},
        "degenerate": problem.degenerate,
    }


def _line(problem: "Problem") -> str:
    from pkb.hardware.roofline import Hardware

    hardware = Hardware.named(_HARDWARE)
    costs = [problem.cost(problem.case("paper", _DTYPE, _WORLD, rank)) for rank in range(_WORLD)]
    most = max(costs, key=lambda cost: max(hardware.times(cost, _DTYPE).values()))
    link = max(most.link.egress, most.link.ingress)
    numbers = [f"{value:.3g}" for value in (most.flops / 1e9, most.hbm / 1e6, link / 1e6)]
    text = [str(problem.id), problem.name, problem.category, problem.title, problem.source]
    cells = [cell.replace("|", r"\|") for cell in text] + numbers + [hardware.bound(most, _DTYPE)]
    return f"| {' | '.join(cells)} |"


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    # A pipe has no width: nothing is folded there. A narrow terminal has no room for sentences.
    console = Console() if sys.stdout.isatty() else Console(width=_WIDE)
    roomy = console.width >= _ROOMY
    table = Table(box=None, pad_edge=False)
    table.add_column("id", justify="right", no_wrap=True)
    for heading in ("name", "category", "ranks"):
        table.add_column(heading, no_wrap=True)
    if roomy:
        table.add_column("what it does", overflow="fold")
    for row in rows:
        worlds = " ".join(map(str, row["worlds"]))
        sentence = [row["title"]] if roomy else []
        table.add_row(str(row["id"]), row["name"], row["category"], worlds, *sentence)
    console.print(table)
    count: dict[str, int] = {}
    for row in rows:
        count[row["category"]] = count.get(row["category"], 0) + 1
    print(f"{len(rows)} problems: " + ", ".join(f"{name} {number}" for name, number in count.items()))
