"""The host's processor and memory, as its system describes them."""

import contextlib
import os
import platform as system
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


def read_cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return system.processor() or system.machine()


def read_total_memory() -> int:
    """Return the bytes of the host's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def read_available_memory(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that can be allocated without swapping: of the machine, or of a container with a limit.

    All of the memory where the system does not say.
    """
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        free = read_total_memory()
    return min([free, *_read_free_in_cgroups(cgroups)])


class _Version(NamedTuple):
    """The names of one version of cgroups."""

    mount: str
    limit: str
    usage: str
    cache: str
    """The line of memory.stat that counts what the kernel can drop."""


_VERSIONS = {
    "": _Version(".", "memory.max", "memory.current", "inactive_file"),
    "memory": _Version("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""By the controllers in a line of /proc/self/cgroup."""


def _read_free_in_cgroups(cgroups: Path) -> Iterator[int]:
    """Yield what this process's cgroup and its ancestors leave free, where they have a limit."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, own = line.split(":", 2)
            if version := _VERSIONS.get(controllers):
                mount = cgroups / version.mount
                # A container may see the whole path of its own cgroup, but only the cgroup itself is mounted.
                place = mount / own.lstrip("/")
                for folder in (place, *place.parents):
                    if folder.is_relative_to(mount):
                        yield from _read_free(folder, version)


def _read_free(folder: Path, version: _Version) -> Iterator[int]:
    # No such files where the controller is off, and the word `max` where there is no limit.
    with contextlib.suppress(OSError, ValueError, KeyError):
        limit, usage = (int((folder / name).read_text()) for name in (version.limit, version.usage))
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        yield max(0, limit - usage + int(counts[version.cache]))
