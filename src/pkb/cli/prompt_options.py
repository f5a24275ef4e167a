"""Options that say what kernel is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import options as o

if TYPE_CHECKING:
    from pkb.generate.prompt import Wanted
    from pkb.problems.suite import Suite


@dataclass(kw_only=True)
class Wanting:
    suite: o.SuiteName = "parallel"
    backend: Annotated[str, typer.Option(help="cuda, triton, parallelkittens or torch.")] = "cuda"
    precision: Annotated[str, typer.Option(help="fp32, fp16 or bf16.")] = "bf16"
    hardware: Annotated[str, typer.Option(help="The profile of the machine that the prompt describes.")] = "h100_8"
    no_hardware: Annotated[bool, typer.Option("--no-hardware", help="Say nothing about the machine.")] = False
    track: o.TrackName = "any"
    nproc: o.UsualNproc = None
    size: Annotated[str, typer.Option(help="Whose shapes the prompt shows: tiny, paper or large.")] = "paper"
    examples: Annotated[str, typer.Option(help="Shipped kernels to show: 0, 1 or few.")] = "1"
    template: Annotated[Path | None, typer.Option(help="TOML with texts in place of the shipped ones.")] = None

    def wanted(self) -> "Wanted":
        from pkb.generate.examples import examples_named
        from pkb.generate.prompt import Wanted

        machine, shown = None if self.no_hardware else self.hardware, examples_named(self.examples)
        return Wanted(self.backend, self.precision, machine, self.track, self.nproc, self.size, shown, self.template)

    @property
    def problems_of(self) -> "Suite":
        return o.chosen_suite(self.suite)
