"""Rows and records as tests need them."""

from pathlib import Path
from typing import Any

from pkb.analyse import Row
from pkb.record import Pace, Record, Verdict
from pkb.runs import number_of


def row(problem: str = "1_allreduce", verdict: str = "CORRECT", speed: float | None = None, **others: Any) -> Row:
    """`speed` is the point estimate, with an interval of a tenth to both sides."""
    timed = {} if speed is None else {"speedup": speed, "low": 0.9 * speed, "high": 1.1 * speed}
    plain: dict[str, Any] = dict.fromkeys(Row.__slots__)
    facts = {"run": "r", "model": "m", "backend": "triton", "category": "A", "platform": "gpus", "sample": "s"}
    facts |= {"size": "", "inputs": "", "degenerate": "", "problem": problem, "verdict": verdict}
    return Row(**(plain | facts | {"number": number_of(problem)} | timed | others))


def record(problem: str = "1_allreduce", verdict: str = "CORRECT", name: str = "mine", **others: Any) -> Record:
    return Record(
        **{
            "problem": problem,
            "category": "Collective Primitive",
            "candidate": {"name": name, "backend": "triton", "sha256": "ab"},
            "setup": {"m": 16, "n": 8, "dtype": "float32", "world": 4, "track": "any"},
            "verdict": Verdict(verdict),
            "reason": "as made",
            "environment": {"platform": "gpus"},
            **others,
        }
    )


def timed_record(speedup: float = 2.0, roofline_us: float | None = 5.0, **others: Any) -> Record:
    timing = {
        "reference_us": 100.0,
        "candidate_us": 100.0 / speedup,
        "speedup": speedup,
        "interval": [0.9 * speedup, 1.1 * speedup],
        "roofline_us": roofline_us,
        "percent_of_roofline": {"reference": 5.0, "candidate": 5.0 * speedup} if roofline_us else {},
        "baselines": {"compile-default": {"failed": 'no } of "blocks_us": here'}},
        "blocks_us": {"reference": [[[99.0, 100.0]], [[101.0, 98.0]]], "candidate": [[[50.0, 49.0]], [[51.0, 50.5]]]},
    }
    return record(timing=timing, pace=Pace.FASTER, **others)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
