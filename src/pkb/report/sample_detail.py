"""What the page shows of one sample."""

import math
import os
import re
import statistics
from pathlib import Path
from typing import Any

from pkb.analyse import Row
from pkb.base.foreign_files import read_end
from pkb.record import Record, Spans
from pkb.runs import Sample
from pkb.speedup import compute_block_times

_WORLDS = ("reference", "candidate")
_PARTS = ("candidate", "setup", "evidence", "warnings", "environment", "seconds", "profile")
_MOST_SOURCE, _MOST_LOG, _MOST_LOGS = 200_000, 4_000, 64
_LOG = re.compile(r"rank_(0|[1-9]\d{0,3})\.txt", re.ASCII)


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
        "logs": _read_logs(sample.folder),
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
    if len({*map(len, ranks.values())}) > 1:
        # As no judgement leaves them: the page could not put them side by side.
        return {"timing": timing, "ranks": None}
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


def _read_logs(folder: Path) -> dict[str, str]:
    """Return by rank the end of what it printed, in the ranks' order."""
    home = folder / "logs"
    if home.is_symlink() or not home.is_dir():
        return {}
    ranks = sorted(int(found[1]) for name in os.listdir(home) if (found := _LOG.fullmatch(name)))
    return {str(rank): text for rank in ranks[:_MOST_LOGS] if (text := _read_log(home / f"rank_{rank}.txt"))}


def _read_log(path: Path) -> str:
    try:
        content, size = read_end(path, _MOST_LOG)
    except (OSError, ValueError):
        return ""
    text = content.decode(errors="replace")
    return text if size <= _MOST_LOG else f"... {size - _MOST_LOG} bytes before\n{text}"
