"""`pkb refine`: ask a model for kernels in several turns, each with feedback on the turn before."""

from typing import Annotated

import typer

from pkb.cli import _options as o
from pkb.cli._generation_options import GenerationOptions
from pkb.cli._shared_options import add_options


def register(app: typer.Typer) -> None:
    app.command("refine")(refine)


@add_options(GenerationOptions)
def refine(
    options: GenerationOptions,
    problems: o.Problems,
    turns: Annotated[int, typer.Option(min=1, help="Answers per sample; a later run may ask for more.")] = 3,
    feedback: Annotated[
        str,
        typer.Option(help="What a turn is shown: g, the last kernel; ge, also what the judge found; gep, also times."),
    ] = "gep",
) -> None:
    """Ask a model for kernels in several turns and keep the best. Run it again to go on where it stopped.

    Example: pkb refine 1-8 --model openai/gpt-5 --turns 4 --backend triton --run runs/turns --max-cost 20
    """
    from pkb.generate.author import Sampler
    from pkb.generate.experiment import SamplingMethod
    from pkb.generate.feedback import parse_feedback_kind

    method = SamplingMethod(turns, parse_feedback_kind(feedback))
    experiments, model = options.plan_experiments(problems, method), options.make_model()
    with options.open_engine(experiments, profiled="p" in feedback) as judging:
        options.carry_out(experiments, Sampler(model, options.budget), judging)
