"""What a judgement leaves on disk: the record, the candidate, its logs, and both sides' outputs."""

from pathlib import Path
from typing import Any

import torch

from pkb.candidate import Candidate
from pkb.judge.state import Seen
from pkb.rank.profilers import TRACE
from pkb.record import Record
from pkb.runs import keep


def save(folder: Path, record: Record, candidate: Candidate, seen: Seen) -> None:
    """record.json, candidate.py, trace.json, logs/rank_*.txt; {reference,candidate}/rank_*.pt of the last trial."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(record.setup["world"]):
        if seen.logs:
            _write(folder / "logs" / f"rank_{rank}.txt", seen.logs.text(rank))
        _save_rank(folder, rank, seen)
    if seen.profile:
        seen.profile.write(folder / TRACE)
    keep(folder, record, candidate.source)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def _save_rank(folder: Path, rank: int, seen: Seen) -> None:
    calls = sorted(call for call, owner in seen.outputs if owner == rank)
    actual = {f"call_{call}": seen.outputs[call, rank] for call in calls}
    _save(folder / "candidate" / f"rank_{rank}.pt", seen.trial, actual)
    if seen.reference and calls:
        expected = {
            f"call_{call}": [output.reference for output in seen.reference.calls[seen.trial, call, rank].outputs]
            for call in calls
        }
        _save(folder / "reference" / f"rank_{rank}.pt", seen.trial, expected)


def _save(path: Path, trial: int, outputs: dict[str, list[torch.Tensor]]) -> None:
    """Plain containers only, so that `torch.load(..., weights_only=True)` reads it back."""
    if outputs:
        path.parent.mkdir(exist_ok=True)
        content: dict[str, Any] = {"trial": trial, "outputs": outputs}
        torch.save(content, path)
