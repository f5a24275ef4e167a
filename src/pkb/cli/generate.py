"""`pkb generate`: ask a model for kernels."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import options as o
from pkb.cli.generation_options import Asking
from pkb.cli.shared_options import sharing

if TYPE_CHECKING:
    from pkb.generate.budget import Budget
    from pkb.generate.experiment import Experiment
    from pkb.generate.model import Model


def register(app: typer.Typer) -> None:
    app.command("generate")(generate)


@sharing(Asking)
def generate(
    asking: Asking,
    problems: o.Problems,
    dry: Annotated[bool, typer.Option("--dry", help="Say what it would cost, and ask nothing.")] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Judge each sample as it arrives.")] = False,
    measure_perf: Annotated[bool, typer.Option("--measure-perf", help="With --judge: time correct ones too.")] = False,
) -> None:
    """Ask a model for kernels. Run it again to go on where it stopped. Exit code 0 only if all samples are there.

    Example: pkb generate 1-8 --model openai/gpt-5 --samples 4 --backend triton --run runs/first --max-cost 20
    """
    from pkb.generate.author import Sampler

    experiments, model = asking.planned(problems), asking.asked()
    if dry:
        print(*_estimate(experiments, model, asking.budget), sep="\n")
        return
    with asking.judging(experiments, timed=measure_perf) if judge else nullcontext() as judging:
        asking.carry_out(experiments, Sampler(model, asking.budget), judging)


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
    prompts, in_all = model.price.of(tokens, 0), model.price.of(tokens, most)
    spent = budget.spent()
    return [*lines, f"$ {prompts:.2f} for the prompts, at most $ {in_all:.2f} in all; spent so far: $ {spent:.2f}"]
