"""A problem in the form of KernelBench: a `Model` with weights of its own, one rank, one device.

The file holds `class Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`, as published ones do; PROBLEM says what
a sound judge needs besides. A candidate's file holds `class ModelNew` with the same constructor and forward.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pkb.errors import UsageError
from pkb.problem import Problem, Size

Constants = Mapping[str, Any]
"""Values for constants of the file, by name; constants that are computed from them follow."""


@dataclass(frozen=True)
class Normal:
    """How a weight is drawn: mean and standard deviation."""

    mean: float
    std: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelProblem(Problem):
    """What a file of KernelBench's form declares beside the model.

    The file may also define `inputs(case)`, where normal values in place of those of `torch.rand` will not do for sound
    inputs, and `MUTANTS` and `EQUIVALENT`, as every problem may.
    """

    category: str = ""
    source: str = "KernelBench"
    sizes: Mapping[str, Size] = field(default_factory=dict)
    tiny: Constants
    """For a judgement on a laptop; the file as it stands has the published size."""
    hidden: Constants
    """Another small size, odd where it can be, that no prompt names."""
    state: Mapping[str, Normal] = field(default_factory=dict)
    """Weights, by patterns of their names, for which the usual sound draw will not do."""
    degenerate: str = ""
    """Why the function is constant whatever is drawn; such a problem counts for nothing."""


def module_at(path: Path, constants: Constants) -> ModuleType:
    """The file's module with other values for some of its constants."""
    return _module_at(path, tuple(sorted((name, _frozen(value)) for name, value in constants.items())))


@cache
def _module_at(path: Path, constants: tuple[tuple[str, Any], ...]) -> ModuleType:
    tree = ast.parse(path.read_text(), str(path))
    values = dict(constants)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in values:
            node.value = ast.copy_location(ast.parse(repr(values.pop(node.targets[0].id)), mode="eval").body, node)
    if values:
        raise UsageError(f"{path} has no constant {', '.join(values)}; PROBLEM may only name constants of the file")
    module = ModuleType(f"pkb_model_{path.stem}")
    module.__file__ = str(path)
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), vars(module))
    return module


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
