"""Options that say what kernel is asked for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pkb.generate.prompt import Wanted

Backend = Annotated[str, typer.Option("--backend", help="cuda, triton, parallelkittens or torch.")]
Precision = Annotated[str, typer.Option("--precision", help="fp32, fp16 or bf16.")]
Hardware = Annotated[str, typer.Option("--hardware", help="The profile of the machine that the prompt describes.")]
NoHardware = Annotated[bool, typer.Option("--no-hardware", help="Say nothing about the machine.")]
Size = Annotated[str, typer.Option("--size", help="Whose shapes the prompt shows: tiny, paper or large.")]
Examples = Annotated[str, typer.Option("--examples", help="Shipped kernels to show: 0, 1 or few.")]
TemplateFile = Annotated[Path | None, typer.Option("--template", help="TOML with texts in place of the shipped ones.")]


def wanted(
    backend: str,
    precision: str,
    hardware: str,
    no_hardware: bool,
    track: str,
    nproc: int,
    size: str,
    examples: str,
    template: Path | None,
) -> "Wanted":
    from pkb.generate.examples import examples_named
    from pkb.generate.prompt import Wanted

    machine, shown = None if no_hardware else hardware, examples_named(examples)
    return Wanted(backend, precision, machine, track, nproc, size, shown, template)
