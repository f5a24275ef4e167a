"""What nvidia-smi says: asking it leaves no CUDA context behind in the judge."""

import shutil
import subprocess
from functools import cache
from typing import Any

_IDENTITY = {"name": "name", "memory_mib": "memory.total", "driver": "driver_version", "capability": "compute_cap"}
_PATIENCE_S = 20


@cache
def identities() -> list[dict[str, Any]]:
    """Name, memory, driver and compute capability of each GPU; empty without the tool."""
    asked = ",".join(_IDENTITY.values())
    lines = _run(f"--query-gpu={asked}", "--format=csv,noheader,nounits").splitlines()
    rows = [[_number(word.strip()) for word in line.split(",")] for line in lines]
    return [dict(zip(_IDENTITY, row, strict=True)) for row in rows if len(row) == len(_IDENTITY)]


@cache
def topology() -> list[str]:
    """How the GPUs are connected, as the tool's matrix has it."""
    lines = _run("topo", "-m").splitlines()
    rows = [" ".join(line.split()) for line in lines]
    return [row for row in rows if row.startswith("GPU")]


@cache
def nvlink() -> list[str]:
    """The state of each GPU's NVLinks; empty where there are none."""
    return [line.strip() for line in _run("nvlink", "--status").splitlines() if line.strip()]


def _number(word: str) -> Any:
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        return word


def _run(*arguments: str) -> str:
    tool = shutil.which("nvidia-smi")
    if not tool:
        return ""
    try:
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
