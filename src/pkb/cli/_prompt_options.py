"""Options that say which kernel a prompt asks for."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.backends import list_backend_names
from pkb.cli import _options as o

if TYPE_CHECKING:
    from pkb.generate.prompt import KernelRequest
    from pkb.problems.problem import Problem
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

    def tell_missing_examples(self, problems: "Sequence[Problem]") -> None:
        """Say in one line on stderr for how many prompts examples are asked for though there are none."""
        from pkb.generate.prompt import has_examples

        request = self.make_request()
        lacking = [problem for problem in problems if request.examples and not has_examples(problem, request)]
        if lacking:
            whose = lacking[0].stem if len(lacking) == 1 else f"{len(lacking)} problems"
            print(
                f"no example is shown for {whose}: there is no shipped kernel for --backend {self.backend} to show; "
                "write one into a text of your own --template, or ask for none with --examples 0",
                file=sys.stderr,
            )

    @property
    def chosen_suite(self) -> "Suite":
        from pkb.problems.suite import find_suite

        return find_suite(self.suite)
