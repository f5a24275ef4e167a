"""`pkb list`: the problems."""

import json
from typing import Annotated, Any

import typer

from pkb.cli import options as o


def register(app: typer.Typer) -> None:
    app.command("list")(list_problems)


def list_problems(
    category: Annotated[str | None, typer.Option(help="Only this category.")] = None, as_json: o.Json = False
) -> None:
    """List the problems: number, name, category, world sizes, sizes.

    Example: pkb list --category 'Tensor Parallel'
    """
    from pkb.errors import UsageError
    from pkb.registry import categories, problems

    found = problems(category)
    if not found:
        raise UsageError(f"no category {category!r}; there are {', '.join(categories())}")
    rows = [_facts(problem) for problem in found]
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        _print_table(rows)


def _facts(problem: Any) -> dict[str, Any]:
    sizes = {name: [size.m, size.n] for name, size in problem.sizes.items()}
    return {
        "id": problem.id,
        "name": problem.name,
        "category": problem.category,
        "title": problem.title,
        "worlds": problem.worlds(),
        "sizes": sizes,
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("id", justify="right")
    for heading in ("name", "category", "ranks"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it does", overflow="fold")
    for row in rows:
        worlds = " ".join(map(str, row["worlds"]))
        table.add_row(str(row["id"]), row["name"], row["category"], worlds, row["title"])
    Console().print(table)
    count: dict[str, int] = {}
    for row in rows:
        count[row["category"]] = count.get(row["category"], 0) + 1
    print(f"{len(rows)} problems: " + ", ".join(f"{name} {number}" for name, number in count.items()))
