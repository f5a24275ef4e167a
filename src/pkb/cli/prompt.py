"""`pkb prompt`: the text that a model would be sent. No model is called."""

from typing import Annotated

import typer

from pkb.cli.prompt_options import Wanting
from pkb.cli.shared_options import sharing


def register(app: typer.Typer) -> None:
    app.command("prompt")(prompt)


@sharing(Wanting)
def prompt(
    wanting: Wanting, problem: Annotated[str, typer.Argument(help="A number or name: 13, gemm_allreduce.")]
) -> None:
    """Print the prompt for one problem.

    Example: pkb prompt 13 --backend cuda --hardware h100_8 --precision bf16
    """
    from pkb.generate.prompt import prompt_for

    print(prompt_for(wanting.problems_of.load(problem), wanting.wanted()), end="")
