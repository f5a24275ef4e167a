"""`pkb inspect`: print a problem's inputs or saved outputs, or compare two folders of saved outputs."""

import io
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.base.foreign_files import read_named_file
from pkb.base.printable import clean_line
from pkb.cli import _options as o
from pkb.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from pkb.problems.problem import Problem

_MOST_BYTES = 8 << 30
"""The most bytes of one rank's outputs."""


def register(app: typer.Typer) -> None:
    app.command("inspect")(inspect)


def inspect(
    target: Annotated[
        str, typer.Argument(help="A problem, or a folder of rank_*.pt files that `pkb eval --out` wrote.")
    ],
    other: Annotated[
        Path | None, typer.Argument(help="A second folder of rank_*.pt files, to compare with the first.")
    ] = None,
    suite: o.SuiteName = "parallel",
    nproc: o.UsualNproc = None,
    dtype: o.Dtype = "float32",
    size: o.UsualSize = None,
    m: o.M = None,
    n: o.N = None,
) -> None:
    """Print shapes and sample values per rank, or compare two folders of saved outputs.

    Example: pkb inspect runs/demo/1_allreduce/1_allreduce_triton/{reference,candidate}
    """
    from pkb.problems.suite import find_suite

    if other is not None:
        lines = _compare_ranks(_load_outputs(Path(target)), _load_outputs(other))
    elif Path(target).is_dir():
        lines = _describe_outputs(_load_outputs(Path(target)))
    else:
        lines = _describe_inputs(find_suite(suite).load(target), nproc, dtype, o.parse_size(size, m, n))
    print("\n".join(map(clean_line, lines)))
    if any("DIFFERS" in line for line in lines):
        raise typer.Exit(1)


def _load_outputs(folder: Path) -> "dict[str, dict[str, Tensor]]":
    """Return the saved tensors by the name of the rank's file and by their own name."""
    files = sorted(folder.glob("rank_*.pt"), key=lambda path: (len(path.name), path.name))
    if not files:
        raise UsageError(f"no rank_*.pt in {folder}; `pkb eval ... --out DIR` writes them to reference/ and candidate/")
    found = {}
    for file in files:
        found[file.stem] = _load_rank(file)
    return found


def _load_rank(file: Path) -> "dict[str, Tensor]":
    import torch

    try:
        content = torch.load(io.BytesIO(read_named_file(file, _MOST_BYTES)), weights_only=True)
        outputs = {
            f"{call} output {k}": t for call, tensors in content["outputs"].items() for k, t in enumerate(tensors)
        }
    except Exception as error:
        # torch raises many kinds of errors for files that it has not written.
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{file} cannot be read: {reason[:300]}; name folders that `pkb eval --out` wrote") from error
    if any(not isinstance(tensor, torch.Tensor) for tensor in outputs.values()):
        raise UsageError(f"{file} holds something that is no tensor; name folders that `pkb eval --out` wrote")
    return outputs


def _describe_outputs(ranks: "dict[str, dict[str, Tensor]]") -> list[str]:
    from pkb.base.tensors import describe_tensor

    lines = []
    for rank, tensors in ranks.items():
        lines += [rank, *(f"  {describe_tensor(name, tensor)}" for name, tensor in tensors.items())]
    return lines


def _compare_ranks(ours: "dict[str, dict[str, Tensor]]", theirs: "dict[str, dict[str, Tensor]]") -> list[str]:
    lines = []
    for rank in sorted(ours | theirs):
        lines.append(rank)
        one, two = ours.get(rank, {}), theirs.get(rank, {})
        lines += [f"  {name}: {_compare_tensors(one.get(name), two.get(name))}" for name in sorted(one | two)]
    return lines


def _compare_tensors(one: "Tensor | None", two: "Tensor | None") -> str:
    if one is None or two is None:
        return f"DIFFERS: only in the {'first' if two is None else 'second'} folder"
    if one.shape != two.shape or one.dtype != two.dtype:
        return f"DIFFERS: {one.dtype}{list(one.shape)} against {two.dtype}{list(two.shape)}"
    if one.numel() == 0:
        return "the same (empty)"
    gap = (one.double() - two.double()).abs().reshape(-1)
    differing = int((gap != 0).sum())
    if not differing:
        return "the same, bit for bit" if one.equal(two) else "DIFFERS: in NaN"
    worst = int(gap.nan_to_num(float("inf")).argmax())
    values = f"{one.reshape(-1)[worst].item():.6g} against {two.reshape(-1)[worst].item():.6g}"
    return f"DIFFERS in {differing} of {gap.numel()} elements; worst at flat index {worst}: {values}"


def _describe_inputs(problem: "Problem", nproc: int | None, dtype: str, size: Any) -> list[str]:
    from torch import Tensor

    from pkb.base.tensors import describe_tensor

    lines = []
    world = nproc or problem.default_world
    for rank in range(world):
        case = problem.case(size, dtype, world, rank, seed=rank + 1)
        lines.append(f"rank {rank}")
        drawn = problem.ask_module("inputs", partial(problem.inputs, case))
        for name, value in zip(problem.arguments, drawn, strict=False):
            lines.append(f"  {describe_tensor(name, value) if isinstance(value, Tensor) else f'{name}: {value!r}'}")
    return lines
