"""`pkb show`: one problem, as a model is shown it, and its facts."""

import json
import sys
from typing import Annotated, Any

import typer

from pkb.cli import options as o


def register(app: typer.Typer) -> None:
    app.command("show")(show)


def show(
    problem: Annotated[str, typer.Argument(help="A number or name: 13, gemm_allreduce.")],
    suite: o.SuiteName = "parallel",
    nproc: o.UsualNproc = None,
    dtype: o.Dtype = "bfloat16",
    as_json: o.Json = False,
) -> None:
    """Print a problem's reference, its sizes and the least work it asks of a rank.

    Example: pkb show 13 --nproc 8 --dtype bfloat16
    """
    found = o.chosen_suite(suite).load(problem)
    world = nproc or found.usual_world
    costs = {name: _cost(found, name, dtype, world) for name in found.sizes}
    if as_json:
        facts = {"problem": found.stem, "category": found.category, "source": found.source, "costs": costs}
        print(json.dumps(facts | {"shown": found.shown()}, indent=1))
        return
    _print(found, costs, dtype, world)


def _cost(problem: Any, size: str, dtype: str, world: int) -> dict[str, float]:
    """The most that any rank has to do."""
    costs = [problem.cost(problem.case(size, dtype, world, rank)) for rank in range(world)]
    return problem.sizes[size].facts() | {
        "flops": max(c.flops for c in costs),
        "hbm_bytes": max(c.hbm for c in costs),
        "egress_bytes": max(c.link.egress for c in costs),
        "ingress_bytes": max(c.link.ingress for c in costs),
    }


def _print(problem: Any, costs: dict[str, dict[str, float]], dtype: str, world: int) -> None:
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.table import Table

    print(f"{problem.stem}: {problem.category}, from {problem.source}\n")
    if problem.degenerate:
        print(f"degenerate: {problem.degenerate}\n")
    if sys.stdout.isatty():
        Console().print(Syntax(problem.shown(), "python", background_color="default"))
    else:
        print(problem.shown())
    headings = [key for key in next(iter(costs.values())) if key != "size"]
    table = Table(box=None, pad_edge=False, title=f"at least, per rank, {world} ranks, {dtype}", title_justify="left")
    table.add_column("size")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, cost in costs.items():
        table.add_row(name, *(_short(cost[heading]) for heading in headings))
    Console().print(table)


def _short(value: float) -> str:
    return str(value) if value < 100_000 and value == int(value) else f"{value:.3g}"
