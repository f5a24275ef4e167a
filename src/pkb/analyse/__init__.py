"""From records to figures: rows, pass@k, fast_p, speed-ups, failures, comparisons."""

from pkb.analyse.bootstrap import Estimate
from pkb.analyse.compare import Change, Compared, compared
from pkb.analyse.metrics import fast_p_at_turns, fast_p_curve, is_fast, pass_at_k
from pkb.analyse.rows import Row, Rows, rows
from pkb.analyse.tables import ALL, Failures, Standing, Summary, by_category, failures, leaderboard, speedups

__all__ = [
    "ALL",
    "Change",
    "Compared",
    "Estimate",
    "Failures",
    "Row",
    "Rows",
    "Standing",
    "Summary",
    "by_category",
    "compared",
    "failures",
    "fast_p_at_turns",
    "fast_p_curve",
    "is_fast",
    "leaderboard",
    "pass_at_k",
    "rows",
    "speedups",
]
