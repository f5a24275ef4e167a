"""`pkb show`: print one problem as models see it, with its sizes and costs."""

import json
import sys
from typing import TYPE_CHECKING

import typer

from pkb.base.printable import clean_line, clean_lines
from pkb.cli import _options as o

if TYPE_CHECKING:
    from pkb.problems.problem import Problem
    from pkb.problems.suite import Suite


def register(app: typer.Typer) -> None:
    app.command("show")(show)


def show(
    problem: o.ProblemName,
    suite: o.SuiteName = "parallel",
    nproc: o.UsualNproc = None,
    dtype: o.Dtype = "bfloat16",
    as_json: o.Json = False,
) -> None:
    """Print a problem's reference, its sizes, and the least work that it takes.

    Example: pkb show 13 --nproc 8 --dtype bfloat16
    """
    from pkb.problems.suite import find_suite

    found = _find_problem(find_suite(suite), problem)
    world = nproc or found.default_world
    costs = {name: _find_most_work(found, name, dtype, world) for name in found.sizes}
    if as_json:
        facts = {"problem": found.stem, "category": found.category, "source": found.source, "costs": costs}
        facts |= {"deviations": dict(found.deviations)}
        print(json.dumps(facts | {"shown": found.show_source()}, indent=1))
        return
    _print(found, costs, dtype, world)


def _find_problem(suite: "Suite", key: str) -> "Problem":
    """Return a problem as its file declares it; a model is loaded, because torch must count the work of its forward."""
    found = suite.read_problem(key)
    return suite.load(key) if found.builds else found


def _find_most_work(problem: "Problem", size: str, dtype: str, world: int) -> dict[str, float]:
    """Return the size, and of each resource the least work of the rank that needs most of it."""
    costs = problem.rank_costs(size, dtype, world)
    return problem.sizes[size].describe() | {
        "flops": max(c.flops for c in costs),
        "hbm_bytes": max(c.hbm for c in costs),
        "egress_bytes": max(c.link.egress for c in costs),
        "ingress_bytes": max(c.link.ingress for c in costs),
    }


def _print(problem: "Problem", costs: dict[str, dict[str, float]], dtype: str, world: int) -> None:
    from rich.syntax import Syntax
    from rich.table import Table
    from rich.text import Text

    from pkb.cli._terminal import make_console

    console = make_console()
    print(clean_line(f"{problem.stem}: {problem.category}, from {problem.source}") + "\n")
    if problem.degenerate:
        print(clean_line(f"degenerate: {problem.degenerate}") + "\n")
    if problem.deviations:
        print("differs from the published problem (docs/deviations.md):")
        for aspect, text in problem.deviations.items():
            print(clean_line(f"  {aspect}: {text}", len(text) + 80))
        print()
    source = problem.show_source()
    shown = clean_lines(source, len(source))
    if sys.stdout.isatty():
        console.print(Syntax(shown, "python", background_color="default"))
    else:
        print(shown)
    headings = [key for key in next(iter(costs.values())) if key != "size"]
    table = Table(box=None, pad_edge=False, title=f"least work per rank, {world} ranks, {dtype}", title_justify="left")
    table.add_column("size")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, cost in costs.items():
        table.add_row(Text(clean_line(name)), *(_shorten(cost[heading]) for heading in headings))
    console.print(table)


def _shorten(value: float) -> str:
    return str(value) if value < 100_000 and value == int(value) else f"{value:.3g}"
