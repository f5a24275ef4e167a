"""From records to figures: rows, pass@k, fast_p, speed-ups, failures, comparisons."""

from pkb.analyse.compare import Change, Comparison, compare_runs
from pkb.analyse.coverage import Coverage, find_coverage
from pkb.analyse.estimates import Estimate
from pkb.analyse.metrics import compute_fast_p_curve, compute_pass_at_k, estimate_fast_p_by_turn, is_fast
from pkb.analyse.rows import Rows, read_rows
from pkb.analyse.tables import (
    ALL,
    FailureCount,
    Standing,
    Summary,
    count_failures,
    list_timed_rows,
    make_leaderboard,
    summarise_by_category,
)
from pkb.row import Row

__all__ = [
    "ALL",
    "Change",
    "Comparison",
    "Coverage",
    "Estimate",
    "FailureCount",
    "Row",
    "Rows",
    "Standing",
    "Summary",
    "compare_runs",
    "compute_fast_p_curve",
    "compute_pass_at_k",
    "count_failures",
    "estimate_fast_p_by_turn",
    "find_coverage",
    "is_fast",
    "list_timed_rows",
    "make_leaderboard",
    "read_rows",
    "summarise_by_category",
]
