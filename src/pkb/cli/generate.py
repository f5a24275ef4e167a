"""`pkb generate`: ask a model for kernels."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.cli import options as o
from pkb.cli import wanting as w
from pkb.cli.evaluate import INTERRUPTED
from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.generate.budget import Budget
    from pkb.generate.model import Model, Price
    from pkb.generate.sampling import Judging, Tally, Task
    from pkb.record import Record

_MILLION = 1_000_000


def register(app: typer.Typer) -> None:
    app.command("generate")(generate)


def generate(
    problems: o.Problems,
    model: Annotated[str, typer.Option(help="provider/name, as litellm knows it; its key is in the environment.")],
    run: Annotated[Path, typer.Option(help="Folder for the samples. What is there already is not asked for again.")],
    samples: Annotated[int, typer.Option(min=1, help="Answers per problem.")] = 1,
    suite: o.SuiteName = "parallel",
    backend: w.Backend = "cuda",
    precision: w.Precision = "bf16",
    hardware: w.Hardware = "h100_8",
    no_hardware: w.NoHardware = False,
    track: o.TrackName = "any",
    nproc: o.Nproc = 4,
    size: w.Size = "paper",
    examples: w.Examples = "1",
    template: w.TemplateFile = None,
    temperature: Annotated[float | None, typer.Option(help="The provider's own unless given.")] = None,
    top_p: Annotated[float | None, typer.Option(help="The provider's own unless given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the first sample; the others count on from it.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Of an answer, thinking included.")] = 16384,
    reasoning_effort: Annotated[str | None, typer.Option(help="low, medium or high, where a model knows it.")] = None,
    api_base: Annotated[str | None, typer.Option(help="URL of a server of your own; --model openai/NAME.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = 8,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 600.0,
    retries: Annotated[int, typer.Option(min=0, help="Further tries after 429, 5xx, a lost connection.")] = 5,
    price_in: Annotated[float | None, typer.Option(help="Dollars per million tokens of prompts.")] = None,
    price_out: Annotated[float | None, typer.Option(help="Dollars per million tokens of answers.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Dollars that the run may cost in all.")] = None,
    dry: Annotated[bool, typer.Option("--dry", help="Say what it would cost, and ask nothing.")] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Judge each sample as it arrives.")] = False,
    judge_size: Annotated[str, typer.Option(help="The size that --judge judges at.")] = "tiny",
    trials: o.Trials = 5,
    platform: o.PlatformName = "auto",
    sandbox: o.SandboxMode = "auto",
    as_json: o.Json = False,
) -> None:
    """Ask a model for kernels. Run it again to go on where it stopped. Exit code 0 only if all samples are there.

    Example: pkb generate 1-8 --model openai/gpt-5 --samples 4 --backend triton --run runs/first --max-cost 20
    """
    from pkb.generate.budget import Budget
    from pkb.generate.model import Model, Patience, Settings
    from pkb.generate.sampling import plan

    wanted = w.wanted(backend, precision, hardware, no_hardware, track, nproc, size, examples, template)
    settings = Settings(model, temperature, top_p, seed, max_tokens, reasoning_effort)
    tasks = plan(o.chosen_suite(suite).select(problems), wanted, settings, samples, run)
    posed = {"nproc": nproc, "size": judge_size, "dtype": wanted.dtype, "trials": trials}
    if judge:
        for task in tasks:
            task.problem.case(judge_size, wanted.dtype, nproc)
    asked = Model(settings, Patience(timeout, retries), api_base, _price(price_in, price_out))
    budget = Budget(run, max_cost)
    if dry:
        print(*_estimate(tasks, asked, budget), sep="\n")
        return
    if max_cost is not None:
        asked.most("")
    with _judging(judge, platform, sandbox, posed, {"track": track}) as judging:
        tally = _generated(tasks, asked, budget, concurrency, judging, as_json)
    _conclude(tasks, tally, budget)


def _price(per_million_in: float | None, per_million_out: float | None) -> "Price | None":
    from pkb.generate.model import Price

    if per_million_in is None and per_million_out is None:
        return None
    if per_million_in is None or per_million_out is None:
        raise UsageError("give --price-in and --price-out together")
    return Price(per_million_in / _MILLION, per_million_out / _MILLION)


def _estimate(tasks: "list[Task]", model: "Model", budget: "Budget") -> list[str]:
    missing = [task for task in tasks if not task.place.facts()]
    tokens = sum(model.count_tokens(task.prompt) for task in missing)
    most = len(missing) * model.settings.max_tokens
    lines = [
        f"{len(missing)} of {len(tasks)} samples are missing",
        f"about {tokens:,} tokens of prompts, at most {most:,} of answers ({model.settings.max_tokens:,} each)",
    ]
    if model.price is None:
        return [*lines, f"the price of {model.settings.model} is unknown; give --price-in and --price-out"]
    prompts, in_all = model.price.of(tokens, 0), model.price.of(tokens, most)
    spent = budget.spent()
    return [*lines, f"$ {prompts:.2f} for the prompts, at most $ {in_all:.2f} in all; spent so far: $ {spent:.2f}"]


@contextmanager
def _judging(
    wished: bool, platform: str, sandbox: str, posed: dict[str, Any], judged: dict[str, Any]
) -> "Iterator[Judging | None]":
    if not wished:
        yield None
        return
    from pkb.engine.local import LocalEngine
    from pkb.generate.sampling import Judging

    with LocalEngine(platform, sandbox=sandbox) as engine:
        yield Judging(engine, posed, judged)


def _generated(
    tasks: "list[Task]", model: "Model", budget: "Budget", concurrency: int, judging: "Judging | None", as_json: bool
) -> "Tally":
    from pkb.generate.sampling import Generation

    generation = Generation(model, budget, concurrency=concurrency, judging=judging, told=_json if as_json else _line)
    try:
        return asyncio.run(generation.run(tasks))
    except KeyboardInterrupt:
        there = sum(task.place.facts() is not None for task in tasks)
        left = f"{there} of {len(tasks)} samples are there; run the same command to go on"
        print(f"\ninterrupted: {left}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _line(task: "Task", news: "dict[str, Any] | Record") -> None:
    name = f"{task.place.problem}  {task.place.name}"
    if not isinstance(news, dict):
        print(f"{name}  {news.verdict}  {news.reason}", flush=True)
        return
    cost = "" if news["cost_usd"] is None else f"  $ {news['cost_usd']:.4f}"
    notes = "; ".join(news["notes"])
    print(f"{name}  {news['tokens']['completion']} tokens{cost}  {news['seconds']:.1f} s  {notes}", flush=True)


def _json(task: "Task", news: "dict[str, Any] | Record") -> None:
    if isinstance(news, dict):
        print(json.dumps({"problem": task.place.problem, "number": task.place.number, **news}), flush=True)
    else:
        print(json.dumps(json.loads(news.to_json())), flush=True)


def _conclude(tasks: "list[Task]", tally: "Tally", budget: "Budget") -> None:
    for folder, reason in tally.failed.items():
        print(f"{folder}: {reason}", file=sys.stderr)
    if tally.stopped:
        print(f"stopped: {tally.stopped}", file=sys.stderr)
    facts = [task.place.facts() for task in tasks]
    there = [fact for fact in facts if fact]
    code = sum(fact["candidate"] is not None for fact in there)
    known = all(fact["cost_usd"] is not None for fact in there)
    cost = f"the run has cost $ {budget.spent():.4f}" if known else "what they cost is unknown"
    counts = f"{len(there)} of {len(tasks)} samples are there, {code} with code; {tally.answered} were asked for now"
    print(f"{counts}; {cost}", file=sys.stderr)
    raise typer.Exit(0 if len(there) == len(tasks) else 1)
