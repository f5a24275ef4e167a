"""What the page shows of one sample."""

import math
import statistics
from pathlib import Path
from typing import Any

from pkb.analyse import Row
from pkb.record import Record, Spans
from pkb.runs import Sample
from pkb.speedup import compute_block_times

_WORLDS = ("reference", "candidate")
_PARTS = ("candidate", "setup", "evidence", "warnings", "environment", "seconds", "profile")
_MOST_SOURCE, _MOST_LOG = 200_000, 4_000


def describe_sample(row: Row) -> dict[str, Any] | None:
    """Return the details of a sample as JSON values; None where the record has gone since it was counted."""
    sample = Sample(row.problem, Path(row.folder))
    record = sample.record
    if record is None:
        return None
    fields = record.to_fields()
    return {
        **{part: fields[part] for part in _PARTS},
        "source": _shorten_source(sample.source),
        "logs": {str(rank): _read_log(sample.folder, rank) for rank in range(row.world)},
        "turns": [found for turn in sample.turns if (found := _describe_turn(Sample(row.problem, turn)))],
        **_describe_times(record, fields["timing"]),
    }


def _describe_turn(sample: Sample) -> dict[str, Any] | None:
    """Return one of several turns in short; None where it has not been judged."""
    record = sample.record
    if record is None:
        return None
    return {
        "turn": sample.name,
        "verdict": record.verdict,
        "reason": record.reason,
        "speedup": record.timing.speedup if record.timing else None,
        "source": _shorten_source(sample.source),
    }


def make_finite(value: Any) -> Any:
    """Return JSON values with texts in place of infinities and NaN, for which JSON has no word."""
    if isinstance(value, dict):
        return {str(key): make_finite(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [make_finite(inside) for inside in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _describe_times(record: Record, fields: dict[str, Any] | None) -> dict[str, Any]:
    if not record.timing:
        return {"timing": None}
    timing, spans = _drop_raw_times(fields), record.timing.blocks_us
    if not all(spans.get(world) for world in _WORLDS):
        # Imported from elsewhere, without the raw times.
        return {"timing": timing, "ranks": None}
    ranks = {world: _compute_rank_medians(spans[world]) for world in _WORLDS}
    return {"timing": timing, "ranks": ranks, "blocks": {world: compute_block_times(spans[world]) for world in _WORLDS}}


def _drop_raw_times(found: Any) -> Any:
    """Return a timing without raw times, which baselines and a control also have."""
    if not isinstance(found, dict):
        return found
    return {key: _drop_raw_times(value) for key, value in found.items() if key != "blocks_us"}


def _compute_rank_medians(spans: Spans) -> list[float]:
    return [statistics.median(rank) for rank in zip(*(call for block in spans for call in block), strict=True)]


def _shorten_source(source: str | None) -> str | None:
    if source is None or len(source) <= _MOST_SOURCE:
        return source
    return f"{source[:_MOST_SOURCE]}\n# ... and {len(source) - _MOST_SOURCE} characters more: see candidate.py"


def _read_log(folder: Path, rank: int) -> str:
    """Return the end of what a rank printed."""
    try:
        with open(folder / "logs" / f"rank_{rank}.txt", "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _MOST_LOG))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return text if size <= _MOST_LOG else f"... {size - _MOST_LOG} bytes before\n{text}"
