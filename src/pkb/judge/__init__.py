"""Runs reference and candidate, compares, times, decides. The story is in judgement.py."""

from pkb.judge.api import evaluate
from pkb.judge.compare import Tolerance
from pkb.judge.judge import Judge
from pkb.judge.limits import Limits

__all__ = ["Judge", "Limits", "Tolerance", "evaluate"]
