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
    "Candidate": "pkb.candidate",
    "Case": "pkb.problems.case",
    "Cost": "pkb.problems.cost",
    "Judge": "pkb.judge.judge",
    "JudgementSettings": "pkb.settings",
    "Limits": "pkb.settings",
    "ModelProblem": "pkb.problems.kernelbench",
    "Normal": "pkb.problems.sound_weights",
    "Problem": "pkb.problems.problem",
    "ProblemSettings": "pkb.settings",
    "Record": "pkb.record",
    "Run": "pkb.runs",
    "Size": "pkb.problems.size",
    "Suite": "pkb.problems.suite",
    "Tolerance": "pkb.settings",
    "Track": "pkb.settings",
    "UsageError": "pkb.errors",
    "Verdict": "pkb.record",
    "evaluate": "pkb.judge.api",
    "evaluate_async": "pkb.judge.api",
    "list_problems": "pkb.problems.suite",
    "load_problem": "pkb.problems.suite",
}

__all__ = [*sorted(_HOMES), "link"]

if TYPE_CHECKING:
    from pkb.candidate import Candidate as Candidate
    from pkb.errors import UsageError as UsageError
    from pkb.judge.api import evaluate as evaluate
    from pkb.judge.api import evaluate_async as evaluate_async
    from pkb.judge.judge import Judge as Judge
    from pkb.problems import link as link
    from pkb.problems.case import Case as Case
    from pkb.problems.cost import Cost as Cost
    from pkb.problems.kernelbench import ModelProblem as ModelProblem
    from pkb.problems.problem import Problem as Problem
    from pkb.problems.problem import Size as Size
    from pkb.problems.sound_weights import Normal as Normal
    from pkb.problems.suite import Suite as Suite
    from pkb.problems.suite import list_problems as list_problems
    from pkb.problems.suite import load_problem as load_problem
    from pkb.record import Record as Record
    from pkb.record import Verdict as Verdict
    from pkb.runs import Run as Run
    from pkb.settings import JudgementSettings as JudgementSettings
    from pkb.settings import Limits as Limits
    from pkb.settings import ProblemSettings as ProblemSettings
    from pkb.settings import Tolerance as Tolerance
    from pkb.settings import Track as Track


def __getattr__(name: str) -> Any:
    if name == "link":
        return import_module("pkb.problems.link")
    if name not in _HOMES:
        raise AttributeError(f"module 'pkb' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
