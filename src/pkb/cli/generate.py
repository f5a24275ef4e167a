"""`pkb generate`: ask a model for kernels."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import _options as o
from pkb.cli._generation_options import GenerationOptions
from pkb.cli._shared_options import add_options

if TYPE_CHECKING:
    from pkb.generate.budget import Budget
    from pkb.generate.experiment import Experiment
    from pkb.generate.model import Model

_JUDGED = ("measure_perf", "judge_size", "trials", "rigor", "platform", "sandbox", "engine", "builders")


def register(app: typer.Typer) -> None:
    app.command("generate")(generate)


@add_options(GenerationOptions)
def generate(
    options: GenerationOptions,
    context: typer.Context,
    problems: o.Problems,
    dry: Annotated[bool, typer.Option("--dry", help="Print what the run would cost, and ask nothing.")] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Judge each sample as it arrives.")] = False,
    measure_perf: Annotated[
        bool, typer.Option("--measure-perf", help="With --judge: time correct kernels too.")
    ] = False,
) -> None:
    """Ask a model for kernels. Run it again to go on where it stopped. Exit code 0 if all samples are there.

    Example: pkb generate 1-8 --model openai/gpt-5 --samples 4 --backend triton --run runs/first --max-cost 20
    """
    from pkb.generate.author import Sampler

    if not judge:
        o.refuse_unused(context, _JUDGED, "without --judge")
    elif not measure_perf:
        o.refuse_unused(context, ["rigor"], "without --measure-perf")
    experiments, model = options.plan_experiments(problems), options.make_model()
    if dry:
        print(*_estimate(experiments, model, options.budget), sep="\n")
        return
    with options.open_engine(experiments, timed=measure_perf) if judge else nullcontext() as judging:
        options.carry_out(experiments, Sampler(model, options.budget), judging)


def _estimate(experiments: "list[Experiment]", model: "Model", budget: "Budget") -> list[str]:
    missing = [experiment for experiment in experiments if not experiment.turns[0].path.is_file()]
    tokens = sum(model.count_tokens(experiment.prompt) for experiment in missing)
    most = len(missing) * model.settings.max_tokens
    lines = [
        f"{len(missing)} of {len(experiments)} samples are missing",
        f"about {tokens:,} tokens of prompts, at most {most:,} of answers ({model.settings.max_tokens:,} each)",
    ]
    if model.price is None:
        return [*lines, f"the price of {model.settings.model} is unknown; give --price-in and --price-out"]
    prompts, in_all = model.price.compute_cost(tokens, 0), model.price.compute_cost(tokens, most)
    spent = budget.sum_costs()
    return [*lines, f"$ {prompts:.2f} for the prompts, at most $ {in_all:.2f} in all; spent so far: $ {spent:.2f}"]
