"""`pkb inspect`: look at a problem's inputs, at saved outputs, or at two folders of them side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.cli import options as o
from pkb.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from pkb.problems.problem import Problem


def register(app: typer.Typer) -> None:
    app.command("inspect")(inspect)


def inspect(
    target: Annotated[str, typer.Argument(help="A problem, or a folder of rank_*.pt files (from `pkb eval --out`).")],
    other: Annotated[Path | None, typer.Argument(help="A second such folder, to compare with the first.")] = None,
    suite: o.SuiteName = "parallel",
    nproc: o.UsualNproc = None,
    dtype: o.Dtype = "float32",
    size: o.UsualSize = None,
    m: o.M = None,
    n: o.N = None,
) -> None:
    """Print shapes and sample values per rank, or compare two saved output folders.

    Example: pkb inspect runs/demo/1_allreduce/1_allreduce_triton/{reference,candidate}
    """
    if other is not None:
        lines = _compared(_saved(Path(target)), _saved(other))
    elif Path(target).is_dir():
        lines = _printed(_saved(Path(target)))
    else:
        lines = _inputs(o.chosen_suite(suite).load(target), nproc, dtype, o.chosen_size(size, m, n))
    print("\n".join(lines))
    if any("DIFFERS" in line for line in lines):
        raise typer.Exit(1)


def _saved(folder: Path) -> "dict[str, dict[str, Tensor]]":
    """Rank file: tensor name: tensor."""
    import torch

    files = sorted(folder.glob("rank_*.pt"), key=lambda path: (len(path.name), path.name))
    if not files:
        raise UsageError(f"no rank_*.pt in {folder}; `pkb eval ... --out DIR` writes them to reference/ and candidate/")
    found = {}
    for file in files:
        content = torch.load(file, weights_only=True)
        outputs = content["outputs"].items()
        found[file.stem] = {f"{call} output {k}": t for call, tensors in outputs for k, t in enumerate(tensors)}
    return found


def _printed(ranks: "dict[str, dict[str, Tensor]]") -> list[str]:
    from pkb.base.tensors import describe_tensor

    return [line for rank, tensors in ranks.items() for line in (rank, *_indented(tensors, describe_tensor))]


def _indented(tensors: dict[str, Any], line: Any) -> list[str]:
    return [f"  {line(name, tensor)}" for name, tensor in tensors.items()]


def _compared(ours: "dict[str, dict[str, Tensor]]", theirs: "dict[str, dict[str, Tensor]]") -> list[str]:
    lines = []
    for rank in sorted(ours | theirs):
        lines.append(rank)
        one, two = ours.get(rank, {}), theirs.get(rank, {})
        lines += [f"  {name}: {_difference(one.get(name), two.get(name))}" for name in sorted(one | two)]
    return lines


def _difference(one: "Tensor | None", two: "Tensor | None") -> str:
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


def _inputs(problem: "Problem", nproc: int | None, dtype: str, size: Any) -> list[str]:
    from torch import Tensor

    from pkb.base.tensors import describe_tensor

    lines = []
    world = nproc or problem.usual_world
    for rank in range(world):
        case = problem.case(size, dtype, world, rank, seed=rank + 1)
        lines.append(f"rank {rank}")
        for name, value in zip(problem.arguments, problem.inputs(case), strict=False):
            lines.append(f"  {describe_tensor(name, value) if isinstance(value, Tensor) else f'{name}: {value!r}'}")
    return lines
