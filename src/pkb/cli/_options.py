"""Options that mean the same in every verb."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from pkb.backends import list_backend_names
from pkb.errors import UsageError
from pkb.problems.size import ITEMSIZES, Size, find_dtype_name
from pkb.settings import INPUTS, RIGORS, Track

PROFILERS = ("torch", "ncu")


def join_names(names: Iterable[str], last: str = "or") -> str:
    """Return the names as a sentence lists them: `a, b or c`."""
    *others, final = names
    return f"{', '.join(others)} {last} {final}" if others else final


_RIGORS = join_names(
    f"{one.name} ({one.warm_up} warm-up calls, at least {one.least_pairs} pairs of blocks)" for one in RIGORS.values()
)

ProblemName = Annotated[str, typer.Argument(help="A number or name: 13, gemm_allreduce.")]
Problems = Annotated[
    str,
    typer.Argument(help="Numbers, ranges, names, a category or `all`: 13; 1-8,13; gemm_allreduce."),
]
OptionalProblems = Annotated[
    str | None,
    typer.Argument(help="Numbers, ranges, names, a category or `all`: 13; 1-8,13; gemm_allreduce."),
]
CandidateFile = Annotated[
    str | None, typer.Option("--candidate", help="The candidate's file, or `reference` for the problem's own source.")
]
SuiteName = Annotated[
    str,
    typer.Option("--suite", help="parallel, kernelbench, a folder of problems, or KernelBench's tasks as a .parquet."),
]
SolutionsDir = Annotated[
    Path | None, typer.Option(help="A folder of candidates named <problem>_<backend>.py; needs --backend.")
]
BackendName = Annotated[
    str | None, typer.Option("--backend", help=f"The backend of the candidates: {join_names(list_backend_names())}.")
]
TrackName = Annotated[
    str,
    typer.Option("--track", help=f"{join_names(Track)}; scratch rejects library collectives and GEMMs."),
]
_MOST_RANKS = 4096
Nproc = Annotated[int, typer.Option("--nproc", "--nproc-per-node", min=1, max=_MOST_RANKS, help="Number of ranks.")]
UsualNproc = Annotated[
    int | None,
    typer.Option(
        "--nproc",
        "--nproc-per-node",
        min=1,
        max=_MOST_RANKS,
        help="Number of ranks.",
        show_default="4; for a KernelBench model 1",
    ),
]
Inputs = Annotated[
    str,
    typer.Option(
        "--inputs",
        help=f"For KernelBench models and a checkout of ParallelKernelBench, {join_names(INPUTS)}: published draws "
        "exactly what their files draw, sound draws values with which every part of the work affects the output.",
    ),
]
UsualTrials = Annotated[
    int | None,
    typer.Option("--trials", min=1, help="Rounds of fresh inputs.", show_default="5; for a KernelBench model 3"),
]
RigorName = Annotated[str, typer.Option("--rigor", help=f"How much is timed: {_RIGORS}.")]
UsualRigor = Annotated[str | None, typer.Option("--rigor", help=f"How much is timed: {_RIGORS}.", show_default="quick")]
Dtype = Annotated[
    str, typer.Option(callback=find_dtype_name, help=f"{join_names(ITEMSIZES)}; fp32, bf16 and fp16 mean the same.")
]
SizeName = Annotated[str, typer.Option("--size", help="tiny, paper or large.")]
UsualSize = Annotated[
    str | None,
    typer.Option("--size", help="tiny, paper or large.", show_default="tiny; where there is none, paper"),
]
M = Annotated[int | None, typer.Option("--m", min=1, help="Number of rows, in place of --size; needs --n.")]
N = Annotated[int | None, typer.Option("--n", min=1, help="Number of columns, in place of --size; needs --m.")]
PlatformName = Annotated[
    str,
    typer.Option("--platform", help="Where ranks run; auto is the best that this machine has, `pkb doctor` lists all."),
]
SandboxMode = Annotated[
    str,
    typer.Option(
        "--sandbox",
        help="auto confines candidates as far as this machine can; require refuses to judge without full confinement; "
        "off confines nothing.",
    ),
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds for each phase: loading, one trial.")]
BuildTimeout = Annotated[float, typer.Option(min=0.1, help="Seconds for compiling a candidate's extensions.")]
Profile = Annotated[
    bool, typer.Option("--profile", help="Profile three more calls on all ranks, and print where the time goes.")
]
Profiler = Annotated[
    str | None,
    typer.Option(
        "--profiler",
        help=f"{join_names(PROFILERS)}; implies --profile. ncu counts what the hardware did, on one rank.",
        show_default=PROFILERS[0],
    ),
]
Store = Annotated[
    Path | None,
    typer.Option("--store", help="Folder of stored reference times.", show_default="a folder in pkb's cache"),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for records, the log of each rank, and the outputs of reference and candidate."),
]
Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN", help="Folders that `pkb eval --out` or `pkb generate` wrote.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def find_profiler(profile: bool, name: str | None) -> str | None:
    """Return the profiler that --profile and --profiler ask for; None for no profile."""
    if name is not None and name not in PROFILERS:
        raise UsageError(f"unknown profiler {name!r}; choose from {', '.join(PROFILERS)}")
    return name or (PROFILERS[0] if profile else None)


def parse_size(context: typer.Context, name: str | None, m: int | None, n: int | None) -> str | Size | None:
    """Return the size that --m and --n give, or else the name of a size; None for the problem's usual size."""
    if (m is None) != (n is None):
        raise UsageError("give --m and --n together, or neither and use --size")
    if m is not None:
        refuse_unused(context, ["size"], "with --m and --n")
    return name if m is None or n is None else Size(m, n)


def refuse_unused(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Raise UsageError if an option or argument of these names was given, on the command line or in the environment.

    An option without effect is a mistake of the user's that nothing else shows.
    """
    given = [name for name in names if is_given(context, name)]
    for parameter in context.command.params:
        if parameter.name in given:
            is_option = parameter.opts[0].startswith("-")
            spelled = parameter.opts[0] if is_option else f"the argument {(parameter.metavar or given[0]).upper()}"
            raise UsageError(f"{spelled} has no effect {why}; leave it out")


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether the user gave the option or argument of this name, even if with its default's value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def prepare_folder(folder: Path) -> None:
    """Create a folder for results, and write to it, before work is done for them. Raises UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}; choose another folder") from error
