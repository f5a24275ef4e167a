"""Describe an exception of a rank for the judge."""

import os
import traceback
from pathlib import Path

import torch

from pkb.base.exception_names import find_known_name
from pkb.protocol.candidate_file import CANDIDATE_FILE
from pkb.protocol.messages import ErrorReport
from pkb.rank.extensions import BuildError

_PKB = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(_PKB + name for name in ("cuda_lib", "suites", "symmetric.py", "triton_lib.py"))
"""The files of pkb in whose frames a candidate may find its mistake; all others are the judge's."""
_MOST_FRAMES, _MOST_OWN, _MOST_ERRORS = 12, 4, 8


def describe_error(error: BaseException) -> ErrorReport:
    """Return type, message and frames of the candidate's own code and of libraries; the judge's frames are left out.

    The type is one of Python, torch or Triton; the name of any other class begins the message.
    """
    lines = [line for one in _list_causes(error) for line in _list_frames(one)]
    known, own = find_known_name(type(error)), type(error).__name__
    message = (str(error).strip() if known == own else f"{own}: {error}".strip())[:2000] or "(no message)"
    errors = error.errors if isinstance(error, BuildError) else []
    return ErrorReport(known, message, _shorten(lines), _advise(error), errors)


def _list_causes(error: BaseException) -> list[BaseException]:
    """Return the exception and what it was raised from, the first cause last.

    What was merely being handled counts only where a library raised: Triton's interpreter, for example, hides the line
    of the kernel there. An exception that the candidate raised itself stands for itself.
    """
    found = [error]
    while len(found) < _MOST_ERRORS:
        last = found[-1]
        hidden = None if last.__suppress_context__ or _is_raised_by_candidate(last) else last.__context__
        cause = last.__cause__ or hidden
        if cause is None or any(cause is one for one in found):
            break
        found.append(cause)
    return found


def _is_raised_by_candidate(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(frames[-1].filename).name == CANDIDATE_FILE


def _list_frames(error: BaseException) -> list[str]:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_of_the_judge(f.filename)]
    lines = [f"{Path(f.filename).name}:{f.lineno} in {f.name}: {f.line or ''}" for f in frames]
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).name == CANDIDATE_FILE:
        lines.append(f"{CANDIDATE_FILE}:{error.lineno} in <module>: {(error.text or '').strip()}")
    return lines


def _is_of_the_judge(filename: str) -> bool:
    # Python's own import machinery says nothing either.
    return filename.startswith("<frozen ") or (filename.startswith(_PKB) and not filename.startswith(_LIBRARIES))


def _shorten(lines: list[str]) -> list[str]:
    """Return the last lines, and before them the candidate's last ones if a library's have pushed them out."""
    tail = lines[-_MOST_FRAMES:]
    own = [line for line in lines[:-_MOST_FRAMES] if line.startswith(f"{CANDIDATE_FILE}:")]
    return [*own[-_MOST_OWN:], *tail]


def _advise(error: BaseException) -> str | None:
    text = str(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return "a rank's memory is limited; allocate less, or choose a smaller --size"
    if "not compiled with CUDA" in text or "No CUDA GPUs" in text or "NVIDIA driver" in text:
        return "this rank runs on the CPU; take the device from the arguments (tensor.device), not by name"
    return None
