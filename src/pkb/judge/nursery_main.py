"""The process that ranks are forked from: it has imported torch and Triton, and has never touched a GPU.

Run as `python -m pkb.judge.nursery_main`. It is told its settings, and obeys the judge, on the socket that is its
stdin. It reports ranks that end, and adopts what candidates leave behind, so that it can be ended. When the judge
goes away, however that happens, it kills every descendant, removes the judge's folders and exits.
"""

import contextlib
import ctypes
import importlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from pkb.judge.channel import Channel, ChannelClosed, Message

_GRACE_S = 0.5
_SERVICE_START_S = 0.3
_SWEEP_S = 5.0
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# What ranks would otherwise each import again. Triton has no build for every system.
_PRELOADED = ("torch", "torch.distributed")
# These look at the environment when they are loaded, so the settings come first.
_PRELOADED_WITH_SETTINGS = ("torch.distributed._symmetric_memory", "pkb.judge.builder", "pkb.registry")
_PRELOADED_IF_THERE = ("triton", "triton.language")
_RANK_PROGRAM = "import json, sys; from pkb.judge.rank import Rank, run_rank; run_rank(Rank, *json.loads(sys.argv[1]))"


class NurseryProcess:
    """Worlds by number, and the ranks alive in each."""

    def __init__(self, channel: Channel, folders: list[str], service: list[str], execute: bool):
        self.channel = channel
        self.folders = folders
        self.execute = execute
        """Whether a rank starts as a program of its own, with imports of its own."""
        self.service = Service(service)
        self.ranks: dict[int, tuple[int, int]] = {}
        """pid: (world, rank)"""
        self.wakeup, wakeup_write = os.pipe()
        os.set_blocking(wakeup_write, False)
        os.set_blocking(self.wakeup, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        self.channel.send({"ready": True})
        try:
            while True:
                readable, _, _ = select.select([self.channel.fileno(), self.wakeup], [], [])
                if self.wakeup in readable:
                    self.reap()
                if self.channel.fileno() in readable:
                    self.obey(*self.channel.receive_with_fds())
        except ChannelClosed:
            self.close()

    def obey(self, message: Message, fds: list[int]) -> None:
        match message.pop("do"):
            case "spawn":
                self.spawn(message, fds)
                self.channel.send({"reply": "spawned"})
            case "signal":
                self.signal(message["world"], message["number"])
                self.channel.send({"reply": "sent"})
            case "end":
                self.channel.send({"reply": "ended", "left": self.end(message["world"], message["kill"])})

    def spawn(self, order: Message, fds: list[int]) -> None:
        """Fork one process per rank; `fds` hold each rank's channel and log, in turn."""
        world = order["world"]
        listener = socket.create_server(("127.0.0.1", 0))
        order["port"] = listener.getsockname()[1]
        for rank in range(order["size"]):
            pid = os.fork()
            if pid == 0:
                self._become_rank(order, rank, fds, listener)
            self.ranks[pid] = (world, rank)
        listener.close()
        for fd in fds:
            os.close(fd)

    def _become_rank(self, order: Message, rank: int, fds: list[int], listener: socket.socket) -> None:
        from pkb.judge.builder import Builder
        from pkb.judge.rank import Rank, run_rank

        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent()
            channel, log = fds[2 * rank : 2 * rank + 2]
            kept = {channel, log, 0, 1, 2, *([listener.fileno()] if rank == 0 else [])}
            close_all_but(kept)
            kind = Builder if order["builds"] else Rank
            start = execute_rank if self.execute and kind is Rank else partial(run_rank, kind)
            start(order, rank, channel, log, listener.detach() if rank == 0 else None)
            status = 0
        finally:
            # Never run the nursery's own clean-up in a fork of it.
            os._exit(status)

    def reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.wakeup, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.ranks:
                world, rank = self.ranks.pop(pid)
                code = os.waitstatus_to_exitcode(status)
                self.channel.send({"event": "exit", "world": world, "rank": rank, "code": code})

    def signal(self, world: int, number: int) -> None:
        for pid, (owner, _) in self.ranks.items():
            if owner == world:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def end(self, world: int, kill: bool) -> list[str]:
        """End a world; the command lines of processes that it had left behind."""
        if kill:
            self.signal(world, signal.SIGKILL)
        self._wait_for(world, _GRACE_S)
        self.signal(world, signal.SIGKILL)
        self._wait_for(world, _SWEEP_S)
        left = self.sweep(grace=0 if kill else _GRACE_S)
        self.service.spoilt = self.service.spoilt or kill
        if self.service.spoilt and not self.ranks:
            self.service.restart()
        return left

    def sweep(self, grace: float) -> list[str]:
        """Kill adopted processes: the children of ranks that have ended."""
        patience = time.monotonic() + grace
        while self._strays() and time.monotonic() < patience:
            time.sleep(0.02)
            self.reap()
        left: dict[int, str] = {}
        deadline = time.monotonic() + _SWEEP_S
        while (strays := self._strays()) and time.monotonic() < deadline:
            for pid in strays:
                left.setdefault(pid, command_line(pid))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
            self.reap()
        return list(left.values())

    def _wait_for(self, world: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while any(owner == world for owner, _ in self.ranks.values()) and time.monotonic() < deadline:
            select.select([self.wakeup], [], [], 0.05)
            self.reap()

    def _strays(self) -> list[int]:
        return [pid for pid in children_of(os.getpid()) if pid not in self.ranks and pid != self.service.pid]

    def close(self) -> None:
        # A rank may fork while it is being killed: repeat until none is left.
        for world in {owner for owner, _ in self.ranks.values()}:
            self.signal(world, signal.SIGKILL)
        self.ranks.clear()
        self.service.stop()
        self.sweep(grace=0)
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


class Service:
    """A command that runs beside the ranks, such as the control daemon of MPS."""

    def __init__(self, command: list[str]):
        self.command = command
        self.process: subprocess.Popen[bytes] | None = None
        self.spoilt = False
        """A client was killed in the middle of its work: start afresh before the next one."""
        self.restart()

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def restart(self) -> None:
        self.stop()
        self.spoilt = False
        if self.command:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(_SERVICE_START_S)

    def stop(self) -> None:
        if self.process:
            for child in children_of(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self.process.kill()
            # Not wait(): the nursery reaps all its children in one place.
            self.process = None


def die_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def execute_rank(order: Message, rank: int, *fds: int | None) -> None:
    """run_rank in a program of its own, which takes this process's place."""
    for fd in fds:
        if fd is not None:
            os.set_inheritable(fd, True)
    what = json.dumps([order, rank, *fds])
    os.execv(sys.executable, [sys.executable, "-P", "-c", _RANK_PROGRAM, what])


def close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


def children_of(parent: int) -> list[int]:
    """Process ids, read from /proc; empty where the system has none."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name, in parentheses, may hold anything; the fields after it are state and parent.
            state, ppid = entry.read_text().rpartition(")")[2].split()[:2]
            if int(ppid) == parent and state != "Z":
                found.append(int(entry.parent.name))
    return found


def command_line(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip()[:200]
    except OSError:
        return f"process {pid}"


def judges_socket() -> socket.socket:
    """Stdin, of which ranks inherit only the null device."""
    taken = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return taken


def main() -> None:
    channel = Channel(judges_socket())
    adopt_orphans()
    for name in _PRELOADED:
        importlib.import_module(name)
    with contextlib.suppress(ChannelClosed):
        settings = channel.receive()
        os.environ |= settings.pop("environment")
        nursery = NurseryProcess(channel, **settings)
        for name in _PRELOADED_WITH_SETTINGS:
            importlib.import_module(name)
        for name in _PRELOADED_IF_THERE:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        nursery.serve()


if __name__ == "__main__":
    main()
