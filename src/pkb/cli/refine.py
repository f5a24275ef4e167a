"""`pkb refine`: ask a model for kernels in several turns, each told what became of the one before."""

from typing import Annotated

import typer

from pkb.cli import options as o
from pkb.cli.generation_options import Asking
from pkb.cli.shared_options import sharing


def register(app: typer.Typer) -> None:
    app.command("refine")(refine)


@sharing(Asking)
def refine(
    asking: Asking,
    problems: o.Problems,
    turns: Annotated[int, typer.Option(min=1, help="Answers per sample. More may be asked for later.")] = 3,
    feedback: Annotated[
        str, typer.Option(help="What a turn is told: g, the last kernel; ge, what the judge saw too; gep, times too.")
    ] = "gep",
) -> None:
    """Ask a model for kernels in several turns. The best is kept. Run it again to go on where it stopped.

    Example: pkb refine 1-8 --model openai/gpt-5 --turns 4 --backend triton --run runs/turns --max-cost 20
    """
    from pkb.generate.author import Sampler
    from pkb.generate.experiment import Method
    from pkb.generate.feedback import feedback_named

    method = Method(turns, feedback_named(feedback))
    experiments, model = asking.planned(problems, method), asking.asked()
    with asking.judging(experiments, profiled="p" in feedback) as judging:
        asking.carry_out(experiments, Sampler(model, asking.budget), judging)
