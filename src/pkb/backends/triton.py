"""Triton kernels: compiled on a GPU, interpreted on a CPU."""

import importlib.util
import re

from pkb.backends import Backend

_IMPORT = re.compile(rb"^\s*(import|from)\s+triton\b", re.MULTILINE)


def recognises(source: bytes) -> bool:
    return _IMPORT.search(source) is not None


def find_missing() -> str | None:
    if importlib.util.find_spec("triton"):
        return None
    return "Triton is not installed; on Linux: pip install triton (there is no build for other systems)"


BACKEND = Backend("triton", recognises, find_missing, kernel_decorators=("triton.jit", "triton.*jit"))
