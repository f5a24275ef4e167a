"""`pkb agent`: let a model work on kernels by itself."""

from typing import Annotated

import typer

from pkb.cli import options as o
from pkb.cli.generation_options import Asking
from pkb.cli.shared_options import sharing


def register(app: typer.Typer) -> None:
    app.command("agent")(agent)


@sharing(Asking)
def agent(
    asking: Asking,
    problems: o.Problems,
    max_steps: Annotated[int, typer.Option(min=1, help="Commands per sample.")] = 30,
    max_seconds: Annotated[float, typer.Option(min=1, help="Seconds per sample.")] = 3600.0,
    max_sample_cost: Annotated[
        float | None, typer.Option(help="Dollars per sample; without it, its even share of --max-cost.")
    ] = None,
) -> None:
    """Let mini-swe-agent drive a model in a folder of its own, where it can evaluate; judge what it leaves.

    Example: pkb agent 13 --model openai/gpt-5 --backend triton --run runs/agent --max-steps 40 --max-cost 10
    """
    from pkb.agent.author import AgentAuthor, driver
    from pkb.generate.experiment import Method

    limits = {"max_steps": max_steps, "max_seconds": max_seconds}
    experiments, model = asking.planned(problems, Method(facts={"agent": limits}, ending="work")), asking.asked()
    share = None if asking.max_cost is None else asking.max_cost / len(experiments)
    cost = max_sample_cost if max_sample_cost is not None else share
    if cost is not None:
        model.most("")
    one = driver().Limits(max_steps, max_seconds, cost=cost)
    with asking.judging(experiments, profiled=True) as judging:
        author = AgentAuthor(model, asking.budget, judging, one, asking.sandbox)
        asking.carry_out(experiments, author, judging)
