"""Cgroups (version 2) that limit the memory and the processes of one world, where the machine delegates them.

A new cgroup is a child of this process's own cgroup or of an ancestor: of the nearest one where this user may make
one and where the controllers `memory` and `pids` are, or can be, enabled.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_CONTROLLERS = {"memory", "pids"}
_PREFIX = "pkb-"
_REMOVE_S = 1.0


class Cgroup:
    """The cgroup of one world."""

    def __init__(self, folder: Path):
        self.folder = folder

    def enter(self) -> None:
        """Move this process into the cgroup, and with it all children that it forks afterwards."""
        (self.folder / "cgroup.procs").write_text("0")

    def has_run_out_of_memory(self) -> bool:
        """Whether the kernel has killed processes of the cgroup at its limit on memory."""
        with contextlib.suppress(OSError):
            events = dict(line.split() for line in (self.folder / "memory.events").read_text().splitlines())
            return int(events.get("oom_kill", 0)) > 0
        return False

    def remove(self) -> None:
        """Remove the cgroup, as soon as the kernel has let go of its processes."""
        deadline = time.monotonic() + _REMOVE_S
        while self.folder.is_dir() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.01)


def make_cgroup(name: str, memory: int, processes: int) -> Cgroup | None:
    """Make a cgroup that limits bytes of memory and processes; None where the machine delegates no such cgroup."""
    parent = _find_parent()
    if parent is None:
        return None
    try:
        return _make(parent, name, memory, processes)
    except OSError:
        return None


@cache
def _find_parent() -> Path | None:
    """Return the nearest cgroup in which limited cgroups can be made and entered, found by trying."""
    for parent in _list_ancestors():
        with contextlib.suppress(OSError):
            probe = _make(parent, "probe", 1 << 30, 100)
            may_enter = _try_to_enter(probe)
            probe.remove()
            if may_enter:
                _remove_orphans(parent)
                return parent
    return None


def _make(parent: Path, name: str, memory: int, processes: int) -> Cgroup:
    folder = parent / f"{_PREFIX}{os.getpid()}-{name}"
    folder.mkdir()
    try:
        _enable_controllers(parent, folder)
        _limit(folder, memory, processes)
    except OSError:
        folder.rmdir()
        raise
    return Cgroup(folder)


def _try_to_enter(cgroup: Cgroup) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            cgroup.enter()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _enable_controllers(parent: Path, folder: Path) -> None:
    if not set((folder / "cgroup.controllers").read_text().split()) >= _CONTROLLERS:
        # Refused where the parent has processes of its own.
        wanted = " ".join(f"+{name}" for name in sorted(_CONTROLLERS))
        (parent / "cgroup.subtree_control").write_text(wanted)


def _limit(folder: Path, memory: int, processes: int) -> None:
    (folder / "memory.max").write_text(str(memory))
    # All processes of the world end together: a world without one of its ranks would only hang.
    (folder / "memory.oom.group").write_text("1")
    (folder / "pids.max").write_text(str(processes))
    with contextlib.suppress(OSError):
        # Missing where the kernel does not count swap.
        (folder / "memory.swap.max").write_text("0")


def _list_ancestors() -> Iterator[Path]:
    """Yield this process's cgroup and its ancestors, as far as they can be seen."""
    with contextlib.suppress(OSError, StopIteration):
        own = re.search(r"^0::(/.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
        rows = Path("/proc/self/mountinfo").read_text().splitlines()
        # The part of the tree that is mounted, and where.
        top, mount = next(row.split()[3:5] for row in rows if " - cgroup2 " in row)
        if own and Path(own[1]).is_relative_to(top):
            place = Path(mount) / Path(own[1]).relative_to(top)
            yield place
            yield from (parent for parent in place.parents if parent.is_relative_to(mount))


def _remove_orphans(parent: Path) -> None:
    """Remove the empty cgroups of nurseries that were killed before they could."""
    for folder in parent.glob(f"{_PREFIX}*-*"):
        maker = folder.name.split("-")[1]
        if maker.isdigit() and not Path("/proc", maker).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()
