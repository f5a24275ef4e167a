"""Options that mean the same everywhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.problems.size import Size
    from pkb.problems.suite import Suite

PROFILERS = ("torch", "ncu")

Problems = Annotated[
    str,
    typer.Argument(help="Numbers, ranges, names, a category or `all`: 13; 1-8,13; gemm_allreduce."),
]
CandidateFile = Annotated[
    str | None, typer.Option("--candidate", help="The candidate's file, or `reference` for the problem's own source.")
]
SuiteName = Annotated[
    str,
    typer.Option("--suite", help="parallel, kernelbench, a folder of problems, or a .parquet table of KernelBench's."),
]
SolutionsDir = Annotated[
    Path | None, typer.Option(help="A folder of candidates named <problem>_<backend>.py; needs --backend.")
]
BackendName = Annotated[
    str | None, typer.Option("--backend", help="How candidates are written: cuda, parallelkittens, torch, triton.")
]
TrackName = Annotated[str, typer.Option("--track", help="scratch: no library collectives or GEMMs; or any.")]
Nproc = Annotated[int, typer.Option("--nproc", "--nproc-per-node", min=1, help="Ranks.")]
UsualNproc = Annotated[
    int | None, typer.Option("--nproc", "--nproc-per-node", min=1, help="Ranks; 4 unless said otherwise, models 1.")
]
Inputs = Annotated[
    str, typer.Option("--inputs", help="Of models: sound, or published, which is the public convention to the letter.")
]
UsualTrials = Annotated[
    int | None, typer.Option("--trials", min=1, help="Rounds of fresh inputs; 5 unless said otherwise, of models 3.")
]
RigorName = Annotated[str, typer.Option("--rigor", help="How much is timed: quick, or paper (500 + 100 calls).")]
UsualRigor = Annotated[
    str | None,
    typer.Option("--rigor", help="How much is timed: paper (500 + 100 calls), or quick, unless said otherwise."),
]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16 or float16.")]
SizeName = Annotated[str, typer.Option("--size", help="tiny, paper or large.")]
UsualSize = Annotated[str | None, typer.Option("--size", help="tiny, paper or large; tiny if there is one.")]
M = Annotated[int | None, typer.Option("--m", min=1, help="Rows, in place of --size; with --n.")]
N = Annotated[int | None, typer.Option("--n", min=1, help="Columns, in place of --size; with --m.")]
PlatformName = Annotated[str, typer.Option("--platform", help="Where ranks live: auto takes the best one found.")]
SandboxMode = Annotated[
    str, typer.Option("--sandbox", help="auto locks candidates up as well as it can; require: fully; off: not at all.")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds for each phase: loading, one trial.")]
Profiler = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="[torch|ncu]",
        help="Trace three more calls on all ranks with torch's profiler; `--profile ncu` has ncu look at one rank.",
    ),
]
BuildTimeout = Annotated[float, typer.Option(min=0.1, help="Seconds for compiling a candidate's extensions.")]
Store = Annotated[
    Path | None, typer.Option("--store", help="Folder of stored times of references; without it in pkb's own folder.")
]
Out = Annotated[Path | None, typer.Option(help="Folder for records, logs per rank and both sides' outputs.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def chosen_profiler(name: str | None) -> str | None:
    if name is not None and name not in PROFILERS:
        raise UsageError(f"unknown profiler {name!r}; choose from {', '.join(PROFILERS)}")
    return name


def chosen_suite(name: str) -> "Suite":
    from pkb.problems.suite import find_suite

    return find_suite(name)


def chosen_size(name: str | None, m: int | None, n: int | None) -> "str | Size | None":
    """A Size from --m --n, or the name of one, or None for the usual one."""
    from pkb.problems.size import Size

    if (m is None) != (n is None):
        raise UsageError("give --m and --n together, or neither and use --size")
    return name if m is None or n is None else Size(m, n)
