"""Compile ahead what a candidate would compile on import: once, in a process without a GPU, into a cache.

The entry of a candidate is found by its source and by all that compiles it, so that it can spoil no other's.
"""

import contextlib
import hashlib
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import torch

import pkb
from pkb.base import toolchain
from pkb.candidate import Candidate
from pkb.failure import Failure
from pkb.judge.building import cache
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.sandboxed import Sandbox
from pkb.judge.worlds.world import World
from pkb.protocol.channel import Message
from pkb.rank.extensions import FINISHED, compiles
from pkb.record import Verdict
from pkb.settings import Limits


def entry_of(candidate: Candidate) -> Path | None:
    """Where the candidate's libraries are or will be; None when it compiles none."""
    return cache.root() / _key(candidate) if compiles(candidate.source) else None


def build(entry: Path, candidate: Candidate, sandbox: Sandbox, nursery: Nursery, limits: Limits) -> None:
    """Compile the candidate's extensions into `entry`. Raises the Failure when they do not compile, or not in time."""
    if lacking := toolchain.missing():
        raise Failure(Verdict.ENVIRONMENT, lacking, check="toolchain")
    # A compiler needs more memory than a rank may be given.
    world = sandbox.world(nursery, 1, replace(limits, memory_bytes=None), builds=True)
    assert world.workshop
    try:
        imported = _imported(candidate, world, limits)
        libraries = _libraries(world.workshop)
        if imported or libraries:
            _keep(entry, libraries)
    finally:
        shutil.rmtree(world.workshop, ignore_errors=True)


def extensions(candidate: Candidate, entry: Path, folder: Path) -> Message:
    """What a rank of the world with this folder must know to import, or compile, the candidate's extensions."""
    libraries = folder / "libraries"
    # A copy: the cache itself is out of a candidate's sight.
    shutil.copytree(entry, libraries) if entry.is_dir() else libraries.mkdir()
    return _order(candidate, libraries, folder / "extensions")


def _order(candidate: Candidate, libraries: Path, workshop: Path) -> Message:
    return {
        "libraries": str(libraries),
        "workshop": str(workshop),
        "backend": candidate.backend.name,
        "architectures": toolchain.architectures(),
    }


def _imported(candidate: Candidate, world: World, limits: Limits) -> bool:
    """Have the builder import the candidate; whether that went well. Its processes have ended afterwards."""
    with world:
        assert world.workshop
        file = world.folder / "candidate.py"
        file.write_bytes(candidate.source)
        nothing_yet = world.folder / "libraries"
        order = {"do": "build", "candidate": str(file), "extensions": _order(candidate, nothing_yet, world.workshop)}
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
