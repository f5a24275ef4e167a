"""Compile a candidate's extensions before its ranks start: once, in a process without a GPU, into a cache.

A candidate's cache entry is keyed by its source and everything that compiles it, so no candidate can change another's.
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
from pkb.base.removal import remove_tree
from pkb.candidate import Candidate
from pkb.failure import Failure
from pkb.judge.building import cache
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.sandboxed import Sandbox
from pkb.judge.worlds.world import World
from pkb.protocol.candidate_file import CANDIDATE_FILE
from pkb.protocol.extension_files import FINISHED, may_compile
from pkb.protocol.messages import BuildExtensions, ExtensionOrder
from pkb.record import Verdict
from pkb.settings import Limits

_MOST_BYTES = 2 << 30
"""The most bytes of all extensions of one candidate."""


def find_entry(candidate: Candidate) -> Path | None:
    """Return the cache folder of the candidate's libraries; None when it compiles none."""
    return cache.find_root() / _compute_key(candidate) if may_compile(candidate.source) else None


def build(entry: Path, candidate: Candidate, sandbox: Sandbox, nursery: Nursery, limits: Limits) -> None:
    """Compile the candidate's extensions into `entry`. Raise Failure when they do not compile, or not in time."""
    if lacking := toolchain.find_missing():
        raise Failure(Verdict.ENVIRONMENT, lacking, check="toolchain")
    # A compiler needs more memory than a rank may have.
    world = sandbox.open_world(nursery, 1, replace(limits, memory_bytes=None), builds=True)
    assert world.build_folder
    try:
        imported = _import_candidate(candidate, world, limits)
        libraries = _list_libraries(world.build_folder)
        if imported or libraries:
            _store(entry, libraries)
    finally:
        remove_tree(world.build_folder)


def describe_extensions(candidate: Candidate, entry: Path, folder: Path, work: Path) -> ExtensionOrder:
    """Return what ranks must know to import, or compile, the candidate's extensions.

    `folder` is their world's, and `work` is where they write.
    """
    libraries = folder / "libraries"
    # A copy: candidates cannot see the cache itself.
    shutil.copytree(entry, libraries) if entry.is_dir() else libraries.mkdir()
    return _make_order(candidate, libraries, work / "extensions")


def _make_order(candidate: Candidate, libraries: Path, build_folder: Path) -> ExtensionOrder:
    return ExtensionOrder(str(libraries), str(build_folder), candidate.backend.name, toolchain.find_architectures())


def _import_candidate(candidate: Candidate, world: World, limits: Limits) -> bool:
    """Have the builder import the candidate; return whether that worked. Its processes have ended afterwards."""
    with world:
        assert world.build_folder
        file = world.folder / CANDIDATE_FILE
        file.write_bytes(candidate.source)
        nothing_yet = world.folder / "libraries"
        order = BuildExtensions(str(file), _make_order(candidate, nothing_yet, world.build_folder))
        try:
            world.ask(order, "build", limits.build_s)
        except Failure as failure:
            if failure.verdict is Verdict.HANG:
                raise _describe_timeout(failure, limits) from None
            if failure.verdict is not Verdict.CRASH:
                raise
            # The candidate may need its peers or a GPU: the ranks will show.
            return False
        world.end()
    return True


def _list_libraries(build_folder: Path) -> list[Path]:
    """Return the libraries that are compiled to their end; plain files only, since the candidate can write here."""
    finished = [mark.parent for mark in build_folder.glob(f"*/{FINISHED}") if not mark.parent.is_symlink()]
    found = [library for folder in finished for library in folder.glob("*.so")]
    libraries = [library for library in found if library.is_file() and not library.is_symlink()]
    if sum(library.lstat().st_size for library in libraries) > _MOST_BYTES:
        reason = f"its compiled extensions have more than {_MOST_BYTES >> 30} GiB; compile for fewer architectures"
        raise Failure(Verdict.BUILD_FAILED, reason, check="build-size")
    return libraries


def _store(entry: Path, libraries: list[Path]) -> None:
    try:
        cache.store(entry, libraries)
    except OSError as error:
        raise Failure(
            Verdict.ENVIRONMENT,
            f"cannot write to the cache of compiled extensions, {entry.parent} ({error.strerror}); "
            "make room there, or set PKB_CACHE to a folder that you can write to",
            check="cache",
        ) from error


def _describe_timeout(hang: Failure, limits: Limits) -> Failure:
    return Failure(
        Verdict.BUILD_FAILED,
        f"importing the candidate and compiling its extensions was not done after {limits.build_s:g} s; "
        "compile less, or raise --build-timeout",
        evidence=hang.evidence,
    )


def _compute_key(candidate: Candidate) -> str:
    parts = [
        candidate.digest,
        candidate.backend.name,
        *(_stamp_folder(folder) for folder in candidate.backend.list_headers()),
        *(pkb.__version__, sys.version, torch.__version__, str(torch.version.cuda)),
        *(str(toolchain.find_architectures()), *toolchain.query_versions()),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _stamp_folder(folder: Path) -> str:
    """Return a text that changes whenever a file in `folder` changes."""
    stamps = []
    for file in sorted(folder.rglob("*")):
        with contextlib.suppress(OSError):
            stamps.append((str(file), os.stat(file).st_size, os.stat(file).st_mtime_ns))
    return repr(stamps)
