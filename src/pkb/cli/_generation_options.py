"""Options of the verbs that ask a model for kernels, and what these verbs have in common."""

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

from pkb.cli import _options as o
from pkb.cli._messages import exit_interrupted
from pkb.cli._prompt_options import PromptOptions
from pkb.engine import list_engines
from pkb.errors import UsageError
from pkb.settings import JudgementSettings, ProblemSettings, find_rigor, find_track

if TYPE_CHECKING:
    from pkb.generate.author import Author
    from pkb.generate.budget import Budget
    from pkb.generate.experiment import Experiment, SamplingMethod
    from pkb.generate.model import Model, ModelSettings, Price
    from pkb.generate.pipeline import Judging, PipelineSummary

_MILLION = 1_000_000


@dataclass(kw_only=True)
class GenerationOptions(PromptOptions):
    model: Annotated[
        str, typer.Option(help="provider/name as litellm spells it; the key is read from the environment.")
    ]
    run: Annotated[
        Path, typer.Option(help="Folder for the samples. Samples that it holds already are not generated again.")
    ]
    samples: Annotated[int, typer.Option(min=1, help="Answers per problem.")] = 1
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature.", show_default="the provider's")] = (
        None
    )
    top_p: Annotated[
        float | None, typer.Option(help="Probability mass that is sampled from.", show_default="the provider's")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of the first sample; each further sample adds 1.")] = None
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer, reasoning included.")] = 16384
    reasoning_effort: Annotated[str | None, typer.Option(help="low, medium or high, for models that support it.")] = (
        None
    )
    api_base: Annotated[str | None, typer.Option(help="URL of your own server; needs --model openai/NAME.")] = None
    concurrency: Annotated[int, typer.Option(min=1, help="Requests that run at the same time.")] = 8
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 600.0
    retries: Annotated[int, typer.Option(min=0, help="Retries after 429, 5xx or a lost connection.")] = 5
    price_in: Annotated[float | None, typer.Option(help="Dollars per million tokens of prompts.")] = None
    price_out: Annotated[float | None, typer.Option(help="Dollars per million tokens of answers.")] = None
    max_cost: Annotated[float | None, typer.Option(help="Most dollars that the whole run may cost.")] = None
    judge_size: Annotated[
        str | None,
        typer.Option(help="The size at which kernels are judged.", show_default="tiny; where there is none, paper"),
    ] = None
    trials: o.UsualTrials = None
    rigor: o.RigorName = "quick"
    platform: o.PlatformName = "auto"
    sandbox: o.SandboxMode = "auto"
    engine: Annotated[
        str, typer.Option(help=f"The engine that judges: {o.join_names(list_engines())}. `local` is this machine.")
    ] = "local"
    builders: Annotated[
        int, typer.Option(min=1, help="Kernels that are compiled at the same time, while another is judged.")
    ] = 2
    as_json: o.Json = False

    @property
    def settings(self) -> "ModelSettings":
        from pkb.generate.model import ModelSettings

        return ModelSettings(
            self.model, self.temperature, self.top_p, self.seed, self.max_tokens, self.reasoning_effort
        )

    @cached_property
    def budget(self) -> "Budget":
        from pkb.generate.budget import Budget

        return Budget(self.run, self.max_cost)

    def make_model(self) -> "Model":
        """Return the model. Raises UsageError where --max-cost is given and the model's price is unknown."""
        from pkb.generate.model import Model, RetryPolicy

        model = Model(self.settings, RetryPolicy(self.timeout, self.retries), self.api_base, self._make_price())
        if self.max_cost is not None:
            model.compute_max_cost("")
        return model

    def plan_experiments(self, problems: str, method: "SamplingMethod | None" = None) -> "list[Experiment]":
        from pkb.generate.experiment import plan

        chosen = self.chosen_suite.select(problems)
        self.tell_missing_examples(chosen)
        return plan(chosen, self.make_request(), self.settings, self.samples, self.run, method)

    @contextmanager
    def open_engine(
        self, experiments: "list[Experiment]", timed: bool = True, profiled: bool = False
    ) -> "Iterator[Judging]":
        from pkb.engine import Site, make_engine
        from pkb.generate.pipeline import Judging

        dtype = self.make_request().dtype
        for experiment in experiments:
            problem = experiment.problem
            problem.case(self.judge_size, dtype, self.nproc or problem.default_world)
        posed = ProblemSettings(self.nproc, self.judge_size, dtype, self.trials)
        rigor = find_rigor(self.rigor) if timed else None
        asked = JudgementSettings(find_track(self.track), rigor=rigor, profile=profiled)
        with contextlib.closing(make_engine(self.engine, Site(self.platform, self.sandbox, self.builders))) as engine:
            yield Judging(engine, posed, asked)

    def carry_out(self, experiments: "list[Experiment]", author: "Author", judging: "Judging | None") -> None:
        """Run the pipeline, print its summary, and end the command with its exit code."""
        from pkb.cli._pipeline_progress import open_reporter
        from pkb.generate.pipeline import Pipeline

        judged = judging is not None
        self._describe_run()
        try:
            with open_reporter(experiments, self.budget, judged, self.as_json) as observer:
                pipeline = Pipeline(author, concurrency=self.concurrency, judging=judging, observer=observer)
                summary = asyncio.run(pipeline.run(experiments))
        except KeyboardInterrupt:
            exit_interrupted(f"{_count_answers(experiments)}; run the same command to go on")
        self._conclude(experiments, summary, judged)

    def _describe_run(self) -> None:
        """Write the model, backend and suite into the run. Raises UsageError if the run belongs to another model."""
        from pkb.runs import Run

        run = Run(self.run)
        if (owner := run.facts.get("model", self.model)) != self.model:
            raise UsageError(f"{self.run} holds samples of {owner}; choose another --run for {self.model}")
        run.update_facts(model=self.model, backend=self.backend, suite=self.suite)

    def _make_price(self) -> "Price | None":
        from pkb.generate.model import Price

        if self.price_in is None and self.price_out is None:
            return None
        if self.price_in is None or self.price_out is None:
            raise UsageError("give --price-in and --price-out together")
        return Price(self.price_in / _MILLION, self.price_out / _MILLION)

    def _conclude(self, experiments: "list[Experiment]", summary: "PipelineSummary", judged: bool) -> None:
        from pkb.generate.experiment import Stage

        for folder, reason in summary.failed.items():
            print(f"{folder}: {reason}", file=sys.stderr)
        if summary.stopped:
            print(f"stopped: {summary.stopped}", file=sys.stderr)
        facts = [fact for experiment in experiments for turn in experiment.turns if (fact := turn.read_facts())]
        code = sum(fact["candidate"] is not None for fact in facts)
        known = all(fact["cost_usd"] is not None for fact in facts)
        cost = f"the run has cost $ {self.budget.sum_costs():.4f}" if known else "the price is unknown"
        counts = f"{_count_answers(experiments)}, {code} with code; {summary.answered} of them new"
        print(f"{counts}; {cost}", file=sys.stderr)
        left = [experiment.find_next(judged)[0] for experiment in experiments]
        if unjudged := left.count(Stage.JUDGE):
            print(f"the machine failed to judge {unjudged}; run the same command to retry", file=sys.stderr)
        raise typer.Exit(0 if set(left) <= {Stage.NOTHING} else 1)


def _count_answers(experiments: "list[Experiment]") -> str:
    turns = [turn for experiment in experiments for turn in experiment.turns]
    noun = "samples" if len(turns) == len(experiments) else "turns"
    return f"{sum(turn.path.is_file() for turn in turns)} of {len(turns)} {noun} are there"
