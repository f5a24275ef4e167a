"""Options that say which kernel a prompt asks for."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.backends import list_backend_names
from pkb.cli import _options as o

if TYPE_CHECKING:
    from pkb.generate.prompt import KernelRequest
    from pkb.problems.suite import Suite


@dataclass(kw_only=True)
class PromptOptions:
    suite: o.SuiteName = "parallel"
    backend: Annotated[str, typer.Option(help=f"{o.join_names(list_backend_names())}.")] = "cuda"
    precision: Annotated[str, typer.Option(help="fp32, fp16 or bf16.")] = "bf16"
    hardware: Annotated[str, typer.Option(help="The hardware profile of the machine that the prompt describes.")] = (
        "h100_8"
    )
    no_hardware: Annotated[bool, typer.Option("--no-hardware", help="Say nothing about the machine.")] = False
    track: o.TrackName = "any"
    nproc: o.UsualNproc = None
    size: Annotated[str, typer.Option(help="The size whose shapes the prompt shows: tiny, paper or large.")] = "paper"
    examples: Annotated[str, typer.Option(help="How many shipped kernels the prompt shows: 0, 1 or few.")] = "1"
    template: Annotated[Path | None, typer.Option(help="TOML file whose texts replace the shipped ones.")] = None

    def make_request(self) -> "KernelRequest":
        from pkb.generate.examples import parse_example_count
        from pkb.generate.prompt import KernelRequest

        machine, shown = None if self.no_hardware else self.hardware, parse_example_count(self.examples)
        return KernelRequest(
            self.backend, self.precision, machine, self.track, self.nproc, self.size, shown, self.template
        )

    @property
    def chosen_suite(self) -> "Suite":
        from pkb.problems.suite import find_suite

        return find_suite(self.suite)
