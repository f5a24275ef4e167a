"""All that the page shows of one sample."""

import math
import statistics
from pathlib import Path
from typing import Any

from pkb.analyse import Row
from pkb.record import Record, Spans
from pkb.runs import Sample
from pkb.speedup import compute_block_times

_SIDES = ("reference", "candidate")
_MOST_SOURCE, _MOST_LOG = 200_000, 4_000


def part(row: Row) -> dict[str, Any] | None:
    """None where the record has gone since it was counted."""
    sample = Sample(row.problem, Path(row.folder))
    record = sample.record
    if record is None:
        return None
    return {
        "candidate": record.candidate,
        "setup": record.setup,
        "evidence": record.evidence,
        "warnings": record.warnings,
        "environment": record.environment,
        "seconds": record.seconds,
        "profile": record.profile,
        "source": _cut(sample.source),
        "logs": {str(rank): _log(sample.folder, rank) for rank in range(row.world)},
        "turns": [told for turn in sample.turns if (told := _turn(Sample(row.problem, turn)))],
        **_times(record),
    }


def _turn(sample: Sample) -> dict[str, Any] | None:
    """One of several, in short; None where it has not been judged."""
    record = sample.record
    if record is None:
        return None
    speedup = record.timing.speedup if record.timing else None
    said = {"verdict": record.verdict, "reason": record.reason, "speedup": speedup}
    return {"turn": sample.name, **said, "source": _cut(sample.source)}


def finite(value: Any) -> Any:
    """JSON has no word for infinity or NaN, and evidence is full of them."""
    if isinstance(value, dict):
        return {str(key): finite(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inside) for inside in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _times(record: Record) -> dict[str, Any]:
    if not record.timing:
        return {"timing": None}
    timing = _without_raw_times(record.timing)
    spans = record.timing.get("blocks_us", {})
    try:
        ranks, blocks = (
            {side: medians(spans[side]) for side in _SIDES} for medians in (_rank_medians, compute_block_times)
        )
    except (KeyError, TypeError, ValueError):
        # Imported from elsewhere, without the raw times.
        return {"timing": timing, "ranks": None}
    return {"timing": timing, "ranks": ranks, "blocks": blocks}


def _without_raw_times(found: Any) -> Any:
    """Baselines and a control have some, too."""
    if not isinstance(found, dict):
        return found
    return {key: _without_raw_times(value) for key, value in found.items() if key != "blocks_us"}


def _rank_medians(spans: Spans) -> list[float]:
    return [statistics.median(rank) for rank in zip(*(call for block in spans for call in block), strict=True)]


def _cut(source: str | None) -> str | None:
    if source is None or len(source) <= _MOST_SOURCE:
        return source
    return f"{source[:_MOST_SOURCE]}\n# ... and {len(source) - _MOST_SOURCE} characters more: see candidate.py"


def _log(folder: Path, rank: int) -> str:
    """The end of what it printed."""
    try:
        with open(folder / "logs" / f"rank_{rank}.txt", "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _MOST_LOG))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return text if size <= _MOST_LOG else f"... {size - _MOST_LOG} bytes before\n{text}"
