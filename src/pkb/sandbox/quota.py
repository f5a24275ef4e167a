"""How much the processes of a world may use together."""

from dataclasses import dataclass

from pkb.hardware.host import read_available_memory

_MEMORY_SHARE = 0.8
_FILES_SHARE = 0.5
_MOST_FILES = 100_000
"""Far more than compilers of kernels leave in their caches; the kernel needs about 1 KiB of memory for each."""


@dataclass(frozen=True)
class Quota:
    memory: int
    """Bytes of memory that all processes of the world may use together."""
    rank_memory: int | None
    """Bytes of memory that one rank may use; None without a limit of its own."""
    file_bytes: int
    """Bytes that may be written to files, and to shared memory, which is files too."""
    most_files: int = _MOST_FILES


def choose_quota(ranks: int, rank_memory: int | None = None) -> Quota:
    """Return the quota of a world whose ranks may each use `rank_memory`, or most of the machine's memory together."""
    memory = ranks * rank_memory if rank_memory else int(_MEMORY_SHARE * read_available_memory())
    return Quota(memory, rank_memory, int(_FILES_SHARE * memory))


def format_bytes(count: int) -> str:
    """Return a number of bytes as people write it: 512 MiB, 8.0 GiB."""
    return f"{count / 2**30:.1f} GiB" if count >= 1 << 30 else f"{count >> 20} MiB"
