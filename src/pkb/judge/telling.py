"""An exception of a rank, for the record."""

import traceback
from pathlib import Path

import torch

from pkb.judge.channel import Message
from pkb.judge.extensions import BuildError


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
