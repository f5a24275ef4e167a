"""Rows and records as tests need them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pkb.analyse import Row
from pkb.record import (
    BaselineTimes,
    CandidateFacts,
    Environment,
    Interval,
    Pace,
    Record,
    SetupFacts,
    Spans,
    Timing,
    Verdict,
)
from pkb.runs import find_problem_number

SETUP = SetupFacts("float32", 4, trials=5, calls=3, m=16, n=8)
SPANS = {"reference": [[[99.0, 100.0]], [[101.0, 98.0]]], "candidate": [[[50.0, 49.0]], [[51.0, 50.5]]]}


def row(problem: str = "1_allreduce", verdict: str = "CORRECT", speed: float | None = None, **others: Any) -> Row:
    """`speed` is the point estimate, with an interval of a tenth to both sides."""
    timed = {} if speed is None else {"speedup": speed, "low": 0.9 * speed, "high": 1.1 * speed}
    plain: dict[str, Any] = dict.fromkeys(Row.__slots__)
    facts = {"run": "r", "model": "m", "backend": "triton", "category": "A", "platform": "gpus", "sample": "s"}
    facts |= {"size": "", "inputs": "", "degenerate": "", "problem": problem, "verdict": verdict, "comparable": True}
    return Row(**(plain | facts | {"number": find_problem_number(problem)} | timed | others))


def record(problem: str = "1_allreduce", verdict: str = "CORRECT", name: str = "mine", **others: Any) -> Record:
    return Record(
        **{
            "problem": problem,
            "category": "Collective Primitive",
            "candidate": CandidateFacts(name, "triton", "ab"),
            "setup": SETUP,
            "verdict": Verdict(verdict),
            "reason": "as made",
            "environment": Environment("gpus", comparable_times=True),
            **others,
        }
    )


def timing(us: dict[str, float], interval: Interval, pace: Pace, blocks: dict[str, Spans], **others: Any) -> Timing:
    known: dict[str, Any] = {
        "method": "gpus: made up",
        "rigor": "quick",
        "reference_us": us["reference"],
        "candidate_us": us["candidate"],
        "speedup": us["reference"] / us["candidate"],
        "interval": interval,
        "spread": 0.0,
        "pace": pace,
        "skew_us": dict.fromkeys(us, 1.0),
        "queued": dict.fromkeys(us, 1.0),
        "calls_per_block": len(blocks["candidate"][0]),
        "warm_up_calls": dict.fromkeys(us, 20),
        "cache": "cold",
        "roofline_us": None,
        "percent_of_roofline": {},
        "control": None,
        "judge_clock_us": {},
        "checked_calls": 4,
        "clocks": {},
        "baselines": {},
        "blocks_us": blocks,
    }
    return Timing(**(known | others))


def timed_record(speedup: float = 2.0, roofline_us: float | None = 5.0, **others: Any) -> Record:
    us = {"reference": 100.0, "candidate": 100.0 / speedup}
    made = timing(us, (0.9 * speedup, 1.1 * speedup), Pace.FASTER, SPANS)
    percents = {"reference": 5.0, "candidate": 5.0 * speedup} if roofline_us else {}
    baselines = {"compile-default": BaselineTimes(failed='no } of "blocks_us": here')}
    times = replace(made, roofline_us=roofline_us, percent_of_roofline=percents, baselines=baselines)
    return record(timing=times, pace=Pace.FASTER, **others)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
