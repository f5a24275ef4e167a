"""What a judgement leaves on disk: the record, the candidate, logs, and the outputs of reference and candidate."""

from pathlib import Path
from typing import Any

import torch

from pkb.base.atomic import replace_whole, write_whole
from pkb.base.foreign_files import make_own_folder
from pkb.base.printable import clean_lines
from pkb.candidate import Candidate
from pkb.judge.correctness.compare import Expected, find_allowed
from pkb.judge.state import State
from pkb.protocol.profile_files import TRACE
from pkb.record import Record
from pkb.runs import save_record
from pkb.trial import Trial


def save_artifacts(folder: Path, record: Record, candidate: Candidate, state: State) -> None:
    """Write record.json, candidate.py, trace.json and logs/rank_*.txt; from the last trial whose outputs were fetched,
    also {reference,candidate}/rank_*.pt."""
    make_own_folder(folder)
    for rank in range(record.setup.world):
        if state.logs:
            _write_text(folder / "logs" / f"rank_{rank}.txt", state.logs.text(rank))
        _save_outputs(folder, rank, state)
    if state.profile:
        state.profile.write(folder / TRACE)
    save_record(folder, record, candidate.source)


def _write_text(path: Path, text: str) -> None:
    make_own_folder(path.parent)
    # Whoever shows the file on a terminal should not have it steered.
    write_whole(path, clean_lines(text, len(text)))


def _save_outputs(folder: Path, rank: int, state: State) -> None:
    calls = sorted(call for call, owner in state.outputs if owner == rank)
    actual = {f"call_{call}": state.outputs[call, rank] for call in calls}
    _save_tensors(folder / "candidate" / f"rank_{rank}.pt", state.trial, actual)
    if state.reference and calls:
        expected = {f"call_{call}": state.reference.calls[state.trial, call, rank].outputs for call in calls}
        outputs = {call: [output.reference for output in known] for call, known in expected.items()}
        allowed = {call: [_allow(output) for output in known] for call, known in expected.items()}
        _save_tensors(folder / "reference" / f"rank_{rank}.pt", state.trial, outputs, allowed=allowed)


def _allow(expected: Expected) -> list[float]:
    """Return the relative errors, root mean square and worst, that a right result may have against the reference."""
    if expected.exact:
        return [0.0, 0.0]
    rms, worst = find_allowed(expected, expected.reference.numel())
    # The comparison is with the oracle, which is as far from the reference as the reference's own error.
    return [float(rms + expected.own.rms), float(worst + expected.own.worst)]


def _save_tensors(path: Path, trial: Trial, outputs: dict[str, list[torch.Tensor]], **facts: Any) -> None:
    """Write a file of plain containers, which `torch.load(..., weights_only=True)` reads."""
    if outputs:
        make_own_folder(path.parent)
        content: dict[str, Any] = {"trial": str(trial), "outputs": outputs, **facts}
        # To an open file: torch refuses the name of a path that begins with a dot.
        with replace_whole(path) as partial, open(partial, "wb") as file:
            torch.save(content, file)
