"""Describe an exception of a rank for the judge."""

import os
import traceback
from pathlib import Path

import torch

from pkb.base.exception_names import find_known_name
from pkb.protocol.messages import ErrorReport
from pkb.rank.extensions import BuildError

_HARNESS = tuple(str(Path(__file__).parents[1] / folder) + os.sep for folder in ("rank", "nursery", "protocol"))


def describe_error(error: BaseException) -> ErrorReport:
    """Return type, message and the frames of the candidate's own code; those of the harness are left out.

    The type is one of Python, torch or Triton; the name of any other class begins the message.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_HARNESS)]
    lines = [f"{Path(f.filename).name}:{f.lineno} in {f.name}: {f.line or ''}" for f in frames]
    known, own = find_known_name(type(error)), type(error).__name__
    message = (str(error).strip() if known == own else f"{own}: {error}".strip())[:2000] or "(no message)"
    errors = error.errors if isinstance(error, BuildError) else []
    return ErrorReport(known, message, lines[-12:], _advise(error), errors)


def _advise(error: BaseException) -> str | None:
    text = str(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return "a rank's memory is limited; allocate less, or choose a smaller --size"
    if "not compiled with CUDA" in text or "No CUDA GPUs" in text or "NVIDIA driver" in text:
        return "this rank runs on the CPU; take the device from the arguments (tensor.device), not by name"
    return None
