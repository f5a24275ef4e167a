"""Find worlds that use more than their quota, where neither a cgroup nor a file system of their own enforces it."""

import contextlib
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pkb.sandbox.cgroup import Cgroup
from pkb.sandbox.processes import read_memory_share, read_resident_memory
from pkb.sandbox.quota import Quota, format_bytes

INTERVAL_S = 0.25
_FULL_S = 1.0
"""Seconds between looks at all processes and folders of a world: this takes a millisecond or two."""
_MOST_FDS = 4096


@dataclass
class LimitedWorld:
    quota: Quota
    cgroup: Cgroup | None
    """The cgroup that limits the world's memory and processes, where the machine delegates one."""
    folders: Sequence[str]
    """Folders of this machine that the world can write to."""
    _inherited: int = field(default_factory=lambda: read_resident_memory(os.getpid()))
    """Bytes that ranks have from the nursery, which forked them, and did not allocate."""
    _due_at: float = 0.0
    _full_at: float = 0.0

    def find_overuse(self, ranks: dict[int, int], list_processes: Callable[[], Sequence[int]]) -> str | None:
        """Return which limit the world exceeds, as a clause; None if it exceeds none. `ranks` are given by process."""
        now = time.monotonic()
        if now < self._due_at or (self.cgroup and not self.folders):
            return None
        self._due_at, is_full = now + INTERVAL_S, now >= self._full_at
        processes = list_processes() if is_full else list(ranks)
        found = None if self.cgroup else self._find_memory_overuse(ranks, processes)
        if is_full and self.folders:
            found = found or self._find_file_overuse(processes)
        if is_full:
            self._full_at = now + _FULL_S
        return found

    def explain_kill(self) -> str | None:
        """Return which limit the kernel has enforced by killing the world."""
        if self.cgroup and self.cgroup.has_run_out_of_memory():
            return f"needed more memory than {format_bytes(self.quota.memory)}, the limit of all ranks together"
        return None

    def _find_memory_overuse(self, ranks: dict[int, int], processes: Sequence[int]) -> str | None:
        inherited = {pid: self._inherited if pid in ranks else 0 for pid in processes}
        resident = {pid: read_resident_memory(pid) - inherited[pid] for pid in processes}
        if self._compare(ranks, resident) is None:
            return None
        # Where processes share pages, that was too much. A process may hide the exact number, which takes time to find.
        self._due_at += _FULL_S
        return self._compare(ranks, {pid: read_memory_share(pid) or resident[pid] for pid in processes})

    def _compare(self, ranks: dict[int, int], used: dict[int, int]) -> str | None:
        quota = self.quota
        for pid, rank in ranks.items():
            if quota.rank_memory and used.get(pid, 0) > quota.rank_memory:
                much, limit = format_bytes(used[pid]), format_bytes(quota.rank_memory)
                return f"used {much} of private and shared memory on rank {rank}; the limit is {limit}"
        if (total := sum(used.values())) > quota.memory:
            limit = format_bytes(quota.memory)
            return f"used {format_bytes(total)} of memory in {len(used)} processes; the limit is {limit}"
        return None

    def _find_file_overuse(self, processes: Sequence[int]) -> str | None:
        files = written = 0
        try:
            for status in itertools.chain(_walk_files(self.folders), _list_deleted_files(processes)):
                files, written = files + 1, written + 512 * status.st_blocks
                if files > self.quota.most_files:
                    return f"left more than {self.quota.most_files} files in its folders"
        except OSError as error:
            return f"made a folder that cannot be listed ({error.strerror})"
        if written > self.quota.file_bytes:
            return f"wrote {format_bytes(written)} to files; the limit is {format_bytes(self.quota.file_bytes)}"
        return None


def _walk_files(folders: Sequence[str]) -> Iterator[os.stat_result]:
    """Yield what the system says about every file and folder below; OSError for what is too deep or not readable."""
    waiting = list(folders)
    while waiting:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield status
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(entry.path)


def _list_deleted_files(processes: Sequence[int]) -> list[os.stat_result]:
    """Return what the system says about files without a name that processes hold open, each of them once."""
    found: dict[tuple[int, int], os.stat_result] = {}
    for pid in processes:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd")[:_MOST_FDS]:
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                        found[status.st_dev, status.st_ino] = status
    return list(found.values())
