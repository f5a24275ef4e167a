"""Read files in the form of KernelBench without running them, and unpack a table of them."""

import ast
import re
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from pkb.errors import UsageError
from pkb.problems.kernelbench import ModelProblem

_COLUMNS = ("code", "level", "name", "problem_id")
_unpacked: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that are deleted when this process ends."""


def read_model(path: Path) -> ModelProblem | None:
    """Return a model's problem as its source declares it, to be listed and not posed; None for other problems."""
    try:
        tree = ast.parse(path.read_text(), str(path))
    except (SyntaxError, ValueError):
        return None
    if not any(isinstance(node, ast.ClassDef) and node.name == "Model" for node in tree.body):
        return None
    module = ModuleType(path.stem, ast.get_docstring(tree))
    module.__file__ = str(path)
    problem = ModelProblem(**{"tiny": None, "hidden": None} | (_read_declaration(tree) or {})).bind(module, path)
    if _read_declaration(tree) is not None:
        # A published file has no PROBLEM, and is shown as a whole.
        vars(module)["PROBLEM"] = problem
    return problem


def _read_declaration(tree: ast.Module) -> dict[str, Any] | None:
    """Return what PROBLEM says, as far as it is written out; None where there is no PROBLEM."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_named(node.targets[0], "PROBLEM"):
            return {key.arg: _read_literal(key.value) for key in node.value.keywords if key.arg in _LISTED}
    return None


_LISTED = ("tiny", "hidden", "degenerate")


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _read_literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return {}


def unpack_table(table: Path) -> Path:
    """Write the tasks of a table (columns code, level, name, problem_id) to a temporary folder, and return it."""
    folder = tempfile.TemporaryDirectory(prefix="pkb-tasks-")
    _unpacked.append(folder)
    for row in _read_rows(table):
        name = re.sub(r"[^\w-]", "_", str(row["name"]).removeprefix(f"{row['problem_id']}_").removesuffix(".py"))
        file = Path(folder.name) / f"level{int(row['level'])}" / f"{int(row['problem_id'])}_{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(row["code"])
    return Path(folder.name)


def _read_rows(table: Path) -> list[dict[str, Any]]:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise UsageError(
            f"reading {table} needs pyarrow; install it with `pip install parallelkernelbench[parquet]`"
        ) from None
    try:
        found = pyarrow.parquet.read_table(table)
    except (OSError, pyarrow.ArrowException) as error:
        raise UsageError(f"cannot read the table {table}: {error}") from error
    if lacking := [column for column in _COLUMNS if column not in found.column_names]:
        raise UsageError(f"{table} has no column {lacking[0]}; a table of tasks has {', '.join(_COLUMNS)}")
    return found.select(_COLUMNS).to_pylist()
