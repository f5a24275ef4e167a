"""Options of all that asks a model for kernels, and what these commands have in common."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import options as o
from pkb.cli.evaluate import INTERRUPTED
from pkb.cli.prompt_options import Wanting
from pkb.errors import UsageError
from pkb.settings import JudgementSettings, ProblemSettings, find_rigor, find_track

if TYPE_CHECKING:
    from pkb.generate.author import Author
    from pkb.generate.budget import Budget
    from pkb.generate.experiment import Experiment, Method
    from pkb.generate.model import Model, Price, Settings
    from pkb.generate.pipeline import Judging, Tally

_MILLION = 1_000_000


@dataclass(kw_only=True)
class Asking(Wanting):
    model: Annotated[str, typer.Option(help="provider/name, as litellm knows it; its key is in the environment.")]
    run: Annotated[Path, typer.Option(help="Folder for the samples. What is there already is not asked for again.")]
    samples: Annotated[int, typer.Option(min=1, help="Answers per problem.")] = 1
    temperature: Annotated[float | None, typer.Option(help="The provider's own unless given.")] = None
    top_p: Annotated[float | None, typer.Option(help="The provider's own unless given.")] = None
    seed: Annotated[int | None, typer.Option(help="Of the first sample; the others count on from it.")] = None
    max_tokens: Annotated[int, typer.Option(min=1, help="Of an answer, thinking included.")] = 16384
    reasoning_effort: Annotated[str | None, typer.Option(help="low, medium or high, where a model knows it.")] = None
    api_base: Annotated[str | None, typer.Option(help="URL of a server of your own; --model openai/NAME.")] = None
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = 8
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 600.0
    retries: Annotated[int, typer.Option(min=0, help="Further tries after 429, 5xx, a lost connection.")] = 5
    price_in: Annotated[float | None, typer.Option(help="Dollars per million tokens of prompts.")] = None
    price_out: Annotated[float | None, typer.Option(help="Dollars per million tokens of answers.")] = None
    max_cost: Annotated[float | None, typer.Option(help="Dollars that the run may cost in all.")] = None
    judge_size: Annotated[
        str | None, typer.Option(help="The size that kernels are judged at; tiny if there is one.")
    ] = None
    trials: o.UsualTrials = None
    rigor: o.RigorName = "quick"
    platform: o.PlatformName = "auto"
    sandbox: o.SandboxMode = "auto"
    engine: Annotated[str, typer.Option(help="Who judges: local, this machine.")] = "local"
    builders: Annotated[int, typer.Option(min=1, help="Kernels compiled at once, while another is judged.")] = 2
    as_json: o.Json = False

    @property
    def settings(self) -> "Settings":
        from pkb.generate.model import Settings

        return Settings(self.model, self.temperature, self.top_p, self.seed, self.max_tokens, self.reasoning_effort)

    @cached_property
    def budget(self) -> "Budget":
        from pkb.generate.budget import Budget

        return Budget(self.run, self.max_cost)

    def asked(self) -> "Model":
        """Raises UsageError where there is a limit on the cost and nobody knows the price."""
        from pkb.generate.model import Model, Patience

        model = Model(self.settings, Patience(self.timeout, self.retries), self.api_base, self._price())
        if self.max_cost is not None:
            model.most("")
        return model

    def planned(self, problems: str, method: "Method | None" = None) -> "list[Experiment]":
        from pkb.generate.experiment import plan

        chosen = self.problems_of.select(problems)
        return plan(chosen, self.wanted(), self.settings, self.samples, self.run, method)

    @contextmanager
    def judging(
        self, experiments: "list[Experiment]", timed: bool = True, profiled: bool = False
    ) -> "Iterator[Judging]":
        from pkb.engine import Site, make_engine
        from pkb.generate.pipeline import Judging

        dtype = self.wanted().dtype
        for experiment in experiments:
            problem = experiment.problem
            problem.case(self.judge_size, dtype, self.nproc or problem.usual_world)
        posed = ProblemSettings(self.nproc, self.judge_size, dtype, self.trials)
        rigor = find_rigor(self.rigor) if timed else None
        asked = JudgementSettings(find_track(self.track), rigor=rigor, profile=profiled)
        with contextlib.closing(make_engine(self.engine, Site(self.platform, self.sandbox, self.builders))) as engine:
            yield Judging(engine, posed, asked)

    def carry_out(self, experiments: "list[Experiment]", author: "Author", judging: "Judging | None") -> None:
        """Run the pipeline and say what came of it; ends the command with its exit code."""
        from pkb.cli.pipeline_progress import watching
        from pkb.generate.pipeline import Pipeline

        judged = judging is not None
        self._sign()
        try:
            with watching(experiments, self.budget, judged, self.as_json) as watch:
                pipeline = Pipeline(author, concurrency=self.concurrency, judging=judging, watch=watch)
                tally = asyncio.run(pipeline.run(experiments))
        except KeyboardInterrupt:
            left = f"{_answers(experiments)}; run the same command to go on"
            print(f"\ninterrupted: {left}", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        self._conclude(experiments, tally, judged)

    def _sign(self) -> None:
        """Write down whose run it is: reports compare runs."""
        from pkb.runs import Run

        run = Run(self.run)
        if (owner := run.facts.get("model", self.model)) != self.model:
            raise UsageError(f"{self.run} holds samples of {owner}; choose another --run for {self.model}")
        run.describe(model=self.model, backend=self.backend, suite=self.suite)

    def _price(self) -> "Price | None":
        from pkb.generate.model import Price

        if self.price_in is None and self.price_out is None:
            return None
        if self.price_in is None or self.price_out is None:
            raise UsageError("give --price-in and --price-out together")
        return Price(self.price_in / _MILLION, self.price_out / _MILLION)

    def _conclude(self, experiments: "list[Experiment]", tally: "Tally", judged: bool) -> None:
        from pkb.generate.experiment import Stage

        for folder, reason in tally.failed.items():
            print(f"{folder}: {reason}", file=sys.stderr)
        if tally.stopped:
            print(f"stopped: {tally.stopped}", file=sys.stderr)
        facts = [fact for experiment in experiments for turn in experiment.turns if (fact := turn.facts())]
        code = sum(fact["candidate"] is not None for fact in facts)
        known = all(fact["cost_usd"] is not None for fact in facts)
        cost = f"the run has cost $ {self.budget.spent():.4f}" if known else "what they cost is unknown"
        counts = f"{_answers(experiments)}, {code} with code; {tally.answered} were asked for now"
        print(f"{counts}; {cost}", file=sys.stderr)
        left = [experiment.next(judged)[0] for experiment in experiments]
        if unjudged := left.count(Stage.JUDGE):
            print(f"the machine failed to judge {unjudged}; run the same command to try again", file=sys.stderr)
        raise typer.Exit(0 if set(left) <= {Stage.NOTHING} else 1)


def _answers(experiments: "list[Experiment]") -> str:
    turns = [turn for experiment in experiments for turn in experiment.turns]
    noun = "samples" if len(turns) == len(experiments) else "turns"
    return f"{sum(turn.path.is_file() for turn in turns)} of {len(turns)} {noun} are there"
