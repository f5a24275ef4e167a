"""An exception of a rank, for the record: as the rank tells it, and as the judge takes it."""

import traceback
from pathlib import Path
from typing import Any

import torch

from pkb.judge.channel import Message
from pkb.judge.extensions import BuildError

_MOST_LINES, _MOST_TEXT = 40, 4000


def told(error: BaseException) -> Message:
    """Its own frames first, ours left out."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/pkb/judge/" not in f.filename]
    lines = [f"{Path(f.filename).name}:{f.lineno} in {f.name}: {f.line or ''}" for f in frames]
    message = str(error).strip()[:2000] or "(no message)"
    facts = {"type": type(error).__name__, "message": message, "traceback": lines[-12:], "advice": _advice(error)}
    return facts | ({"errors": error.errors} if isinstance(error, BuildError) else {})


def _advice(error: BaseException) -> str | None:
    text = str(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return "a rank's memory is limited; allocate less, or choose a smaller --size"
    if "not compiled with CUDA" in text or "No CUDA GPUs" in text or "NVIDIA driver" in text:
        return "this rank runs on the CPU; take the device from the arguments (tensor.device), not by name"
    return None


def as_told(error: Any) -> dict[str, Any]:
    """What a rank says about an exception, in the form that it should have: a candidate may have said it."""
    said = error if isinstance(error, dict) else {}
    lists = {name: [_printable(line) for line in _listed(said.get(name))] for name in ("traceback", "errors")}
    texts = {name: _printable(said.get(name)) for name in ("type", "message", "advice")}
    return {name: value for name, value in {**texts, **lists}.items() if value or name in ("type", "message")}


def _listed(value: Any) -> list[Any]:
    return value[:_MOST_LINES] if isinstance(value, list) else []


def _printable(value: Any) -> str:
    """One line of plain text, however it came."""
    text = value[:_MOST_TEXT] if isinstance(value, str) else ""
    return "".join(char if char.isprintable() else " " for char in text)
