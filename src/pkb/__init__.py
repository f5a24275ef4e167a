"""ParallelKernelBench: may this kernel replace that PyTorch + collectives code, and how much faster is it?

import pkb
record = pkb.evaluate("allreduce", "my_kernel.py", nproc=4)
print(record.verdict, record.reason)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Imported on first use, so that a rank or `pkb --help` pays only for what it needs.
_HOMES = {
    "Case": "pkb.case",
    "Cost": "pkb.cost",
    "Judge": "pkb.judge",
    "ModelProblem": "pkb.model_problem",
    "Normal": "pkb.sound",
    "Problem": "pkb.problem",
    "Record": "pkb.record",
    "Size": "pkb.problem",
    "Suite": "pkb.registry",
    "UsageError": "pkb.errors",
    "Verdict": "pkb.record",
    "evaluate": "pkb.judge",
    "load": "pkb.registry",
    "problems": "pkb.registry",
}

__all__ = [*sorted(_HOMES), "link"]

if TYPE_CHECKING:
    from pkb import link as link
    from pkb.case import Case as Case
    from pkb.cost import Cost as Cost
    from pkb.errors import UsageError as UsageError
    from pkb.judge import Judge as Judge
    from pkb.judge import evaluate as evaluate
    from pkb.model_problem import ModelProblem as ModelProblem
    from pkb.problem import Problem as Problem
    from pkb.problem import Size as Size
    from pkb.record import Record as Record
    from pkb.record import Verdict as Verdict
    from pkb.registry import Suite as Suite
    from pkb.registry import load as load
    from pkb.registry import problems as problems
    from pkb.sound import Normal as Normal


def __getattr__(name: str) -> Any:
    if name == "link":
        return import_module("pkb.link")
    if name not in _HOMES:
        raise AttributeError(f"module 'pkb' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)
