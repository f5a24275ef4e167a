"""Compile ahead what a candidate would compile on import: once, in a process without a GPU, into a cache.

The entry of a candidate is found by its source and by all that compiles it, so that it can spoil no other's.
"""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

import pkb
from pkb import toolchain
from pkb.candidate import Candidate
from pkb.judge import cache
from pkb.judge.channel import Message
from pkb.judge.extensions import FINISHED, compiles
from pkb.judge.failure import Failure
from pkb.judge.limits import Limits
from pkb.judge.nursery import Nursery
from pkb.judge.world import World
from pkb.record import Verdict


def entry_of(candidate: Candidate) -> Path | None:
    """Where the candidate's libraries are or will be; None when it compiles none."""
    return cache.root() / _key(candidate) if compiles(candidate.source) else None


def build(entry: Path, candidate: Candidate, nursery: Nursery, limits: Limits) -> None:
    """Compile the candidate's extensions into `entry`. Raises the Failure when they do not compile, or not in time."""
    if lacking := toolchain.missing():
        raise Failure(Verdict.ENVIRONMENT, lacking, check="toolchain")
    with _workshop(nursery) as workshop:
        imported = _imported(candidate, entry, workshop, nursery, limits)
        libraries = _libraries(workshop)
        if imported or libraries:
            _keep(entry, libraries)


def extensions(candidate: Candidate, entry: Path, workshop: Path) -> Message:
    """What a rank, or the builder, must know to import or compile the candidate's extensions."""
    return {
        "libraries": str(entry),
        "workshop": str(workshop),
        "backend": candidate.backend.name,
        "architectures": toolchain.architectures(),
    }


def _imported(candidate: Candidate, entry: Path, workshop: Path, nursery: Nursery, limits: Limits) -> bool:
    """Have the builder import the candidate; whether that went well."""
    # A compiler needs more memory than a rank may be given.
    with World(nursery, 1, replace(limits, memory_bytes=None), builds=True) as world:
        world.start()
        file = world.folder / "candidate.py"
        file.write_bytes(candidate.source)
        order = {"do": "build", "candidate": str(file), "extensions": extensions(candidate, entry, workshop)}
        try:
            world.ask(order, "build", limits.build_s)
        except Failure as failure:
            if failure.verdict is Verdict.HANG:
                raise _too_slow(failure, limits) from None
            if failure.verdict is not Verdict.CRASH:
                raise
            # It may need its peers or a GPU: the ranks will tell.
            return False
        world.end()
    return True


def _libraries(workshop: Path) -> list[Path]:
    """Those compiled to their end; plain files only, since the candidate could write here."""
    finished = [mark.parent for mark in workshop.glob(f"*/{FINISHED}") if not mark.parent.is_symlink()]
    found = [library for folder in finished for library in folder.glob("*.so")]
    return [library for library in found if library.is_file() and not library.is_symlink()]


def _keep(entry: Path, libraries: list[Path]) -> None:
    try:
        cache.keep(entry, libraries)
    except OSError as error:
        raise Failure(
            Verdict.ENVIRONMENT,
            f"cannot write to the cache of compiled extensions, {entry.parent} ({error.strerror}); "
            "make room there, or set PKB_CACHE to a folder that you can write to",
            check="cache",
        ) from error


@contextmanager
def _workshop(nursery: Nursery) -> Iterator[Path]:
    """A folder that outlives the builder, so that nothing changes in it while libraries are taken out."""
    folder = Path(tempfile.mkdtemp(prefix="build-", dir=nursery.folder))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _too_slow(hang: Failure, limits: Limits) -> Failure:
    return Failure(
        Verdict.BUILD_FAILED,
        f"importing the candidate and compiling its extensions was not done after {limits.build_s:g} s; "
        "compile less, or raise --build-timeout",
        **hang.evidence,
    )


def _key(candidate: Candidate) -> str:
    parts = [
        candidate.digest,
        candidate.backend.name,
        *(_stamp(folder) for folder in candidate.backend.headers()),
        *(pkb.__version__, sys.version, torch.__version__, str(torch.version.cuda)),
        *(str(toolchain.architectures()), *toolchain.identity()),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _stamp(folder: Path) -> str:
    """Changes whenever a file in `folder` does."""
    stamps = []
    for file in sorted(folder.rglob("*")):
        with contextlib.suppress(OSError):
            stamps.append((str(file), os.stat(file).st_size, os.stat(file).st_mtime_ns))
    return repr(stamps)
