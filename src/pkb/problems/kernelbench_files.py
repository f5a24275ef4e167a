"""Read files in the form of KernelBench without running them, and unpack a table of them."""

import ast
import re
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from pkb.base.foreign_files import describe_error, open_named_file
from pkb.errors import UsageError
from pkb.problems.kernelbench import ModelProblem

_NAME = 200
"""The most characters of a task's name."""
_TABLE_BYTES = 512 << 20
_COLUMNS = ("code", "level", "name", "problem_id")
_unpacked: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that are deleted when this process ends."""


def read_model(path: Path) -> ModelProblem | None:
    """Return a model's problem as its source declares it, to be listed and not posed; None for other problems."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return {}


def unpack_table(table: Path) -> Path:
    """Write the tasks of a table (columns code, level, name, problem_id) to a temporary folder, and return it."""
    folder = tempfile.TemporaryDirectory(prefix="pkb-tasks-")
    _unpacked.append(folder)
    for number, row in enumerate(_read_rows(table), start=1):
        try:
            file = Path(folder.name) / _name_task(row)
            content = row["code"].encode()
        except (ValueError, AttributeError) as error:
            raise UsageError(f"{table}: task {number}: {error}; a table of tasks has {', '.join(_COLUMNS)}") from error
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    return Path(folder.name)


def _name_task(row: dict[str, Any]) -> str:
    """Return the path of a task's file below the folder. Raises ValueError where a column has no number or text."""
    for column in ("level", "problem_id"):
        if not re.fullmatch(r"\d{1,9}", str(row[column])):
            raise ValueError(f"its {column} is no number")
    if not isinstance(row["name"], str) or not isinstance(row["code"], str):
        raise ValueError("its name or its code is no text")
    level, identity = int(row["level"]), int(row["problem_id"])
    title = row["name"].removeprefix(f"{row['problem_id']}_").removesuffix(".py")
    name = re.sub(r"[^\w-]", "_", title, flags=re.ASCII)
    return f"level{level}/{identity}_{name[:_NAME]}.py"


def _read_rows(table: Path) -> list[dict[str, Any]]:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise UsageError(f"reading {table} needs pyarrow; install it with `pip install -e '.[parquet]'`") from None
    try:
        with open_named_file(table) as plain, pyarrow.parquet.ParquetFile(plain) as file:
            groups = range(file.metadata.num_row_groups)
            if sum(file.metadata.row_group(at).total_byte_size for at in groups) > _TABLE_BYTES:
                raise ValueError(f"it has more than {_TABLE_BYTES >> 20} MiB")
            found = file.read()
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise UsageError(f"cannot read the table {table}: {describe_error(error)}; name a .parquet of tasks") from error
    if lacking := [column for column in _COLUMNS if column not in found.column_names]:
        raise UsageError(f"{table} has no column {lacking[0]}; a table of tasks has {', '.join(_COLUMNS)}")
    return found.select(_COLUMNS).to_pylist()
