"""`pkb prompt`: print the text that a model is sent. No model is called."""

import typer

from pkb.cli import _options as o
from pkb.cli._prompt_options import PromptOptions
from pkb.cli._shared_options import add_options


def register(app: typer.Typer) -> None:
    app.command("prompt")(prompt)


@add_options(PromptOptions)
def prompt(options: PromptOptions, problem: o.ProblemName) -> None:
    """Print the prompt for one problem.

    Example: pkb prompt 13 --backend cuda --hardware h100_8 --precision bf16
    """
    from pkb.generate.prompt import write_prompt

    asked = options.chosen_suite.load(problem)
    options.tell_missing_examples([asked])
    print(write_prompt(asked, options.make_request()), end="")
