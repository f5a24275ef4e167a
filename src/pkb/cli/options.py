"""Options that mean the same everywhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.problem import Size
    from pkb.registry import Suite

Problems = Annotated[
    str,
    typer.Argument(help="Numbers, ranges, names, a category or `all`: 13; 1-8,13; gemm_allreduce."),
]
CandidateFile = Annotated[
    str | None, typer.Option("--candidate", help="The candidate's file, or `reference` for the problem's own source.")
]
SuiteFolder = Annotated[
    Path | None, typer.Option("--suite", help="A folder of your own problems, in place of the shipped ones.")
]
SolutionsDir = Annotated[
    Path | None, typer.Option(help="A folder of candidates named <number>_<name>_<backend>.py; needs --backend.")
]
BackendName = Annotated[str | None, typer.Option("--backend", help="How candidates are written: cuda, triton, torch.")]
Nproc = Annotated[int, typer.Option("--nproc", "--nproc-per-node", min=1, help="Ranks.")]
Trials = Annotated[int, typer.Option(min=1, help="Rounds of fresh inputs.")]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16 or float16.")]
SizeName = Annotated[str, typer.Option("--size", help="tiny, paper or large.")]
M = Annotated[int | None, typer.Option("--m", min=1, help="Rows, in place of --size; with --n.")]
N = Annotated[int | None, typer.Option("--n", min=1, help="Columns, in place of --size; with --m.")]
PlatformName = Annotated[str, typer.Option("--platform", help="Where ranks live: auto takes the best one found.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds for each phase: loading, one trial.")]
Out = Annotated[Path | None, typer.Option(help="Folder for records, logs per rank and both sides' outputs.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def chosen_suite(folder: Path | None) -> "Suite":
    from pkb.registry import PARALLEL, Suite

    return Suite(folder) if folder else PARALLEL


def chosen_size(name: str, m: int | None, n: int | None) -> "str | Size":
    """A Size from --m --n, or the name of one."""
    from pkb.problem import Size

    if (m is None) != (n is None):
        raise UsageError("give --m and --n together, or neither and use --size")
    return name if m is None or n is None else Size(m, n)
