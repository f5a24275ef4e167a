"""Turn a process into a rank: enter its folder, join its peers, import a candidate's file."""

import contextlib
import faulthandler
import importlib.machinery
import importlib.util
import os
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import torch.distributed as dist

from pkb.protocol.channel import Channel, ChannelClosed
from pkb.protocol.messages import Header, decode_order, encode
from pkb.rank.error_report import describe_error

_COLLECTIVE_TIMEOUT = timedelta(hours=1)
"""Long: the judge has deadlines of its own."""


def run_rank(
    kind: Callable[..., Any],
    order: Header,
    rank: int,
    port: int,
    channel_fd: int,
    log_fd: int,
    listener_fd: int | None,
) -> None:
    """Live as a rank of this kind, from the fork to the judge's Leave."""
    os.setsid()
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    os.close(log_fd)
    sys.stdout = sys.stderr = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)
    # A signal such as SIGSEGV ends the rank as ever, but first writes the Python line that it hit into the log.
    faulthandler.enable(file=2, all_threads=False)
    channel = Channel(socket.socket(fileno=channel_fd))
    with contextlib.suppress(ChannelClosed):
        try:
            worker = kind(decode_order(order), rank, port, channel, listener_fd)
        except Exception as error:
            channel.send(encode(describe_error(error)))
            return
        worker.serve()


def enter_folder(folder: Path, memory: int | None) -> None:
    """Work in an empty folder of this rank's own, under a limit on memory."""
    folder.mkdir()
    os.chdir(folder)
    for variable in ("HOME", "XDG_CACHE_HOME"):
        os.environ[variable] = str(folder)
    # The world's ranks share these: symmetric memory meets over sockets in TMPDIR, and kernels are compiled once.
    os.environ["TMPDIR"] = str(folder.parent)
    # Python remembers the nursery's.
    tempfile.tempdir = None
    os.environ["TRITON_CACHE_DIR"] = str(folder.parent / "triton")
    if memory:
        # Private memory only: shared mappings and what the fork brought along do not count.
        resource.setrlimit(resource.RLIMIT_DATA, (_data_in_use() + memory,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _data_in_use() -> int:
    try:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData")) * 1024
    except (OSError, StopIteration):
        return 0


def share_memory_without_tracker() -> None:
    """Let Python's named shared memory start no process that would stay. Who makes such memory unlinks it."""
    from multiprocessing import resource_tracker

    for name in ("register", "unregister", "ensure_running"):
        setattr(resource_tracker, name, lambda *_: None)


def join_group(backend: str, rank: int, world: int, port: int, listener_fd: int | None) -> None:
    """Join the other ranks in a process group."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    listening: dict[str, Any] = {} if listener_fd is None else {"master_listen_fd": listener_fd}
    # `wait_for_workers` would hold rank 0 until all have called; init_process_group waits anyway.
    store = dist.TCPStore("127.0.0.1", port, world, is_master=rank == 0, wait_for_workers=False, **listening)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=_COLLECTIVE_TIMEOUT)


def import_candidate(path: Path, folder: Path | None = None) -> ModuleType:
    """Import a candidate's file; its `__file__` is a copy in `folder`, where it can leave files beside itself.

    The code is that of the original, which no rank can change.
    """
    copy = _copy_file(path, folder) if folder else path
    loader = importlib.machinery.SourceFileLoader(path.stem, str(path))
    spec = importlib.util.spec_from_file_location(path.stem, copy, loader=loader)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _copy_file(path: Path, folder: Path) -> Path:
    """Copy a file whole: other ranks do the same at the same time."""
    draft = folder / f"{path.name}-{os.getpid()}"
    draft.write_bytes(path.read_bytes())
    return draft.replace(folder / path.name)


def find_entry(module: ModuleType, name: str) -> Any:
    """Return what a candidate's file defines to be judged."""
    if not hasattr(module, name):
        raise AttributeError(f"the file defines no `{name}`; define it with the reference's signature")
    if not callable(getattr(module, name)):
        raise TypeError(f"`{name}` is not a function or a class")
    return getattr(module, name)
