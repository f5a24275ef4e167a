"""The host's processor and memory, as its system describes them."""

import os
import platform as system
from pathlib import Path


def read_cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return system.processor() or system.machine()


def read_total_memory() -> int:
    """Return the bytes of the host's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def read_available_memory() -> int:
    """Return the bytes that can be allocated without swapping; all of the memory where the system does not say."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return read_total_memory()
