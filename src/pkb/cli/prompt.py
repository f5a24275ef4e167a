"""`pkb prompt`: the text that a model would be sent. No model is called."""

from typing import Annotated

import typer

from pkb.cli import options as o
from pkb.cli import wanting as w


def register(app: typer.Typer) -> None:
    app.command("prompt")(prompt)


def prompt(
    problem: Annotated[str, typer.Argument(help="A number or name: 13, gemm_allreduce.")],
    suite: o.SuiteName = "parallel",
    backend: w.Backend = "cuda",
    precision: w.Precision = "bf16",
    hardware: w.Hardware = "h100_8",
    no_hardware: w.NoHardware = False,
    track: o.TrackName = "any",
    nproc: o.Nproc = 4,
    size: w.Size = "paper",
    examples: w.Examples = "1",
    template: w.TemplateFile = None,
) -> None:
    """Print the prompt for one problem.

    Example: pkb prompt 13 --backend cuda --hardware h100_8 --precision bf16
    """
    from pkb.generate.prompt import prompt_for

    wanted = w.wanted(backend, precision, hardware, no_hardware, track, nproc, size, examples, template)
    print(prompt_for(o.chosen_suite(suite).load(problem), wanted), end="")
