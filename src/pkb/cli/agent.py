"""`pkb agent`: let a model work on kernels as an agent."""

from typing import Annotated

import typer

from pkb.cli import _options as o
from pkb.cli._generation_options import GenerationOptions
from pkb.cli._shared_options import add_options


def register(app: typer.Typer) -> None:
    app.command("agent")(agent)


@add_options(GenerationOptions)
def agent(
    options: GenerationOptions,
    problems: o.Problems,
    max_steps: Annotated[int, typer.Option(min=1, help="Commands per sample.")] = 30,
    max_seconds: Annotated[float, typer.Option(min=1, help="Seconds per sample.")] = 3600.0,
    max_sample_cost: Annotated[
        float | None, typer.Option(help="Dollars per sample.", show_default="an even share of --max-cost")
    ] = None,
) -> None:
    """Let mini-swe-agent run a model in a folder of its own, where it can evaluate kernels; judge its last kernel.

    Example: pkb agent 13 --model openai/gpt-5 --backend triton --run runs/agent --max-steps 40 --max-cost 10
    """
    from pkb.agent.author import AgentAuthor, import_driver
    from pkb.generate.experiment import SamplingMethod

    limits = {"max_steps": max_steps, "max_seconds": max_seconds}
    experiments = options.plan_experiments(problems, SamplingMethod(facts={"agent": limits}, ending="work"))
    model = options.make_model()
    share = None if options.max_cost is None else options.max_cost / len(experiments)
    cost = max_sample_cost if max_sample_cost is not None else share
    if cost is not None:
        model.compute_max_cost("")
    one = import_driver().AgentLimits(max_steps, max_seconds, cost=cost)
    with options.open_engine(experiments, profiled=True) as judging:
        author = AgentAuthor(model, options.budget, judging, one, options.sandbox)
        options.carry_out(experiments, author, judging)
