"""Facts about GPUs from nvidia-smi, which leaves no CUDA context behind in the judge."""

import shutil
import subprocess
from functools import cache
from typing import Any

_IDENTITY = {"name": "name", "memory_mib": "memory.total", "driver": "driver_version", "capability": "compute_cap"}
_TIMEOUT_S = 20


@cache
def query_gpus() -> list[dict[str, Any]]:
    """Return name, memory, driver and compute capability of each GPU; nothing where there is no nvidia-smi."""
    columns = ",".join(_IDENTITY.values())
    lines = _run(f"--query-gpu={columns}", "--format=csv,noheader,nounits").splitlines()
    rows = [[_parse_number(word.strip()) for word in line.split(",")] for line in lines]
    return [dict(zip(_IDENTITY, row, strict=True)) for row in rows if len(row) == len(_IDENTITY)]


@cache
def query_topology() -> list[str]:
    """Return the rows of the matrix that shows how the GPUs are connected."""
    lines = _run("topo", "-m").splitlines()
    rows = [" ".join(line.split()) for line in lines]
    return [row for row in rows if row.startswith("GPU")]


@cache
def query_nvlinks() -> list[str]:
    """Return the lines on the state of each GPU's NVLinks; nothing where there are none."""
    return [line.strip() for line in _run("nvlink", "--status").splitlines() if line.strip()]


def _parse_number(word: str) -> Any:
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        return word


def _run(*arguments: str) -> str:
    tool = shutil.which("nvidia-smi")
    if not tool:
        return ""
    try:
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
