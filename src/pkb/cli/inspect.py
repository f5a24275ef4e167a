"""`pkb inspect`: print a problem's inputs or saved outputs, or compare two folders of saved outputs."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
_POSED = ("suite", "nproc", "dtype", "size", "m", "n")
_DIFFERS = "DIFFERS"


@dataclass
class _SavedRank:
    """What one rank returned, by the names of calls and outputs."""

    tensors: "dict[str, Tensor]" = field(default_factory=dict)
    allowed: dict[str, list[float]] = field(default_factory=dict)
    """For a reference: the relative errors, root mean square and worst element, that the judge allows."""


def register(app: typer.Typer) -> None:
    app.command("inspect")(inspect)


def inspect(
    context: typer.Context,
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

    Two folders are compared by the judge's tolerance, which the folder `reference` holds; exit code 1 if they differ
    by more.

    Example: pkb inspect runs/demo/1_allreduce/1_allreduce_triton/{reference,candidate}
    """
    from pkb.problems.suite import find_suite

    if other is not None or Path(target).is_dir():
        o.refuse_unused(context, _POSED, "on saved outputs")
    if other is not None:
        lines = _compare_ranks(_load_outputs(Path(target)), _load_outputs(other))
    elif Path(target).is_dir():
        lines = _describe_outputs(_load_outputs(Path(target)))
    else:
        shape = o.parse_size(context, size, m, n)
        lines = _describe_inputs(find_suite(suite).load(target), nproc, dtype, shape)
    print("\n".join(map(clean_line, lines)))
    if other is not None and any(_DIFFERS in line for line in lines):
        raise typer.Exit(1)


def _load_outputs(folder: Path) -> dict[str, _SavedRank]:
    """Return what each rank returned, by the name of the rank's file."""
    files = sorted(folder.glob("rank_*.pt"), key=lambda path: (len(path.name), path.name))
    if not files:
        raise UsageError(f"no rank_*.pt in {folder}; `pkb eval ... --out DIR` writes them to reference/ and candidate/")
    return {file.stem: _load_rank(file) for file in files}


def _load_rank(file: Path) -> _SavedRank:
    import torch

    try:
        content = torch.load(io.BytesIO(read_named_file(file, _MOST_BYTES)), weights_only=True)
        rank = _SavedRank(_name_outputs(content["outputs"]), _name_outputs(content.get("allowed", {})))
    except Exception as error:
        # torch raises many kinds of errors for files that it has not written.
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{file} cannot be read: {reason[:300]}; name folders that `pkb eval --out` wrote") from error
    if any(not isinstance(tensor, torch.Tensor) for tensor in rank.tensors.values()) or not all(
        map(_are_errors, rank.allowed.values())
    ):
        raise UsageError(f"{file} holds something that is no tensor; name folders that `pkb eval --out` wrote")
    return rank


def _name_outputs(calls: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{call} output {k}": one for call, outputs in calls.items() for k, one in enumerate(outputs)}


def _are_errors(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(one, float) for one in value)


def _describe_outputs(ranks: dict[str, _SavedRank]) -> list[str]:
    from pkb.base.tensors import describe_tensor

    lines = []
    for name, rank in ranks.items():
        lines += [name, *(f"  {describe_tensor(output, tensor)}" for output, tensor in rank.tensors.items())]
    return lines


def _compare_ranks(ours: dict[str, _SavedRank], theirs: dict[str, _SavedRank]) -> list[str]:
    lines = []
    for rank in sorted(ours | theirs, key=lambda name: (len(name), name)):
        lines.append(rank)
        one, two = ours.get(rank, _SavedRank()), theirs.get(rank, _SavedRank())
        allowed = one.allowed | two.allowed
        for name in sorted(one.tensors | two.tensors):
            lines.append(f"  {name}: {_compare(one.tensors.get(name), two.tensors.get(name), allowed.get(name))}")
    return lines


def _compare(one: "Tensor | None", two: "Tensor | None", allowed: list[float] | None) -> str:
    if one is None or two is None:
        return f"{_DIFFERS}: only in the {'first' if two is None else 'second'} folder"
    if one.shape != two.shape or one.dtype != two.dtype:
        return f"{_DIFFERS}: {one.dtype}{list(one.shape)} against {two.dtype}{list(two.shape)}"
    if one.numel() == 0:
        return "the same (empty)"
    from pkb.base.tensors import view_bytes

    differing = (view_bytes(one) != view_bytes(two)).any(dim=-1)
    if not differing.any():
        return "the same, bit for bit"
    return _compare_values(one, two, allowed, int(differing.sum()))


def _compare_values(one: "Tensor", two: "Tensor", allowed: list[float] | None, differing: int) -> str:
    """Return by how much two tensors differ, and whether that is within the judge's tolerance."""
    import torch

    from pkb.judge.correctness.compare import Expected, find_allowed, measure_error

    known = "the judge's tolerance" if allowed else "the tolerance for a reference without an error of its own"
    rms, worst = measure_error(two, one)
    alike = Expected.of(one, one)
    most_rms, most = allowed or ((0.0, 0.0) if alike.exact else find_allowed(alike, one.numel()))
    wide = torch.complex128 if one.dtype.is_complex else torch.float64
    gap = (one.to(wide) - two.to(wide)).abs().reshape(-1).nan_to_num(float("inf"))
    at = int(gap.argmax())
    values = f"{one.reshape(-1)[at].item()!r} against {two.reshape(-1)[at].item()!r} at flat index {at}"
    head = f"within {known}" if rms <= most_rms and worst <= most else f"{_DIFFERS} by more than {known}"
    errors = f"relative error {worst:.3g}, allowed {most:.3g}; root mean square {rms:.3g}, allowed {most_rms:.3g}"
    return f"{head} ({errors}); {differing} of {one.numel()} elements not the same bit for bit; farthest: {values}"


def _describe_inputs(problem: "Problem", nproc: int | None, dtype: str, size: Any) -> list[str]:
    lines = []
    world = nproc or problem.default_world
    for rank in range(world):
        case = problem.case(size, dtype, world, rank, seed=rank + 1)
        lines.append(f"rank {rank}")
        drawn = problem.ask_module("inputs", partial(problem.inputs, case))
        for name, value in zip(problem.arguments, drawn, strict=False):
            lines += [f"  {line}" for line in _describe_value(name, value)]
    return lines


def _describe_value(name: str, value: Any) -> Iterator[str]:
    """Yield a line for each tensor, number or text in an argument."""
    from torch import Tensor

    from pkb.base.tensors import describe_tensor

    if isinstance(value, Tensor):
        yield describe_tensor(name, value)
    elif isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _describe_value(f"{name}[{key!r}]", one)
    elif isinstance(value, list | tuple) and any(isinstance(one, Tensor | list | tuple | dict) for one in value):
        for k, one in enumerate(value):
            yield from _describe_value(f"{name}[{k}]", one)
    else:
        yield f"{name}: {value!r}"
