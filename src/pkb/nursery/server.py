"""What the nursery does: it forks ranks, reports those that end, and adopts what candidates leave behind, to end it."""

import contextlib
import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable, Container
from functools import partial
from pathlib import Path

from pkb.nursery.mps import Service
from pkb.protocol.channel import Channel, ChannelClosed, Message
from pkb.sandbox.confine import confine
from pkb.sandbox.processes import (
    children_of,
    close_all_but,
    command_line,
    die_with_adopter,
    die_with_parent,
    ended_children,
    execute_rank,
    family_of,
    import_present,
    keep_to,
    leave_the_nursery,
    session_of,
    sessions_in_use,
    usage,
)

_GRACE_S = 0.5
_SWEEP_S = 10.0
_MOST_NAMED = 20
_CELL_S = 30.0


class NurseryProcess:
    """Worlds by number, and the ranks alive in each."""

    def __init__(
        self, channel: Channel, folders: list[str], service: list[str], execute: bool, for_candidates: list[str]
    ):
        self.channel = channel
        self.folders = folders
        self.for_candidates = for_candidates
        """Modules to be imported before the first candidate comes."""
        self.execute = execute
        """Whether a rank starts as a program of its own, with imports of its own."""
        self.service = Service(service)
        self.ranks: dict[int, tuple[int, int]] = {}
        """pid: (world, rank)"""
        self.sessions: dict[int, int] = {}
        """Of every rank, and its world, for as long as anybody is in it: afterwards its number may be a stranger's."""
        self.cells: dict[int, tuple[int, Channel]] = {}
        """world: the keeper of its cell, and what the keeper lives by"""
        self.wakeup, wakeup_write = os.pipe()
        os.set_blocking(wakeup_write, False)
        os.set_blocking(self.wakeup, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Until the judge goes away. Whatever ends it, nothing is left."""
        try:
            self.channel.send({"ready": True})
            while True:
                readable, _, _ = select.select([self.channel.fileno(), self.wakeup], [], [])
                if self.wakeup in readable:
                    self.reap()
                if self.channel.fileno() in readable:
                    self.obey(*self.channel.receive_with_fds())
        finally:
            self.close()

    def obey(self, message: Message, fds: list[int]) -> None:
        number = message.pop("order")
        self.channel.send({"order": number, **self._obeyed(message, fds)})

    def _obeyed(self, message: Message, fds: list[int]) -> Message:
        match message.pop("do"):
            case "spawn":
                return self.spawn(message, fds)
            case "signal":
                self.signal(message["world"], message["number"])
                return {}
            case "look":
                return {"helpers": self.helpers(message["world"])}
            case "usage":
                return {"usage": {self.ranks[pid][1]: usage(pid) for pid in self._ranks_of(message["world"])}}
            case "preload":
                import_present(message["modules"])
                return {}
            case "pin":
                self.pin(**message)
                return {}
            case "end":
                return {"left": self.end(**message)}
            case unknown:
                raise ValueError(unknown)

    def spawn(self, order: Message, fds: list[int]) -> Message:
        """Fork one process per rank; `fds` hold each rank's channel and log, in turn. What the sandbox closes."""
        self.service.wait_until_up()
        if order["for_candidate"]:
            self.preload()
        if order["sandbox"] == "off":
            born: Message = {"ranks": self._fork_ranks(order, fds)}
        else:
            born = self._fork_cell(order, fds)
        for fd in fds:
            os.close(fd)
        ranks = born.pop("ranks", [])
        self.ranks |= {pid: (order["world"], rank) for rank, pid in enumerate(ranks)}
        self.sessions |= dict.fromkeys(ranks, order["world"])
        return born

    def preload(self) -> None:
        """What only candidates need; once."""
        if self.for_candidates:
            import_present(self.for_candidates)
            self.for_candidates = []

    def _fork_cell(self, order: Message, fds: list[int]) -> Message:
        """Have the ranks forked by a process that has confined itself, and adopt them when it has gone."""
        ours, theirs = map(Channel, socket.socketpair())
        pid = os.fork()
        if pid == 0:
            self._become_cell(order, fds, theirs)
        theirs.close()
        try:
            born = ours.receive(time.monotonic() + _CELL_S)
        except (ChannelClosed, TimeoutError):
            born = {"refused": "the process that forks the ranks broke down"}
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if keeper := born.pop("keeper", None):
            self.cells[order["world"]] = (keeper, ours)
        else:
            ours.close()
        return born

    def _become_cell(self, order: Message, fds: list[int], channel: Channel) -> None:
        try:
            leave_the_nursery()
            close_all_but({*fds, channel.fileno(), 0, 1, 2})
            root = Path(order["folder"]).parent / "root"
            root.mkdir(exist_ok=True)
            writable = sorted([order["folder"], order["shared"], *order["exposed"]])
            keeper, facts = confine(order["sandbox"], str(root), writable, order["size"], channel.fileno())
            # With a keeper, ranks die with that.
            tie = partial(die_with_adopter, os.getpid()) if keeper is None else lambda: None
            channel.send({"ranks": self._fork_ranks(order, fds, tie), "keeper": keeper, "facts": facts})
            signal.pause()
        except OSError as error:
            channel.send({"refused": f"{error.strerror or error} {error.filename or ''}".strip()})
        finally:
            os._exit(0)

    def _fork_ranks(self, order: Message, fds: list[int], tie: Callable[[], None] = die_with_parent) -> list[int]:
        # Not in the nursery: a cell has a loopback of its own.
        listener = socket.create_server(("127.0.0.1", 0))
        order["port"] = listener.getsockname()[1]
        pids = []
        for rank in range(order["size"]):
            pid = os.fork()
            if pid == 0:
                self._become_rank(order, rank, fds, listener, tie)
            pids.append(pid)
        listener.close()
        return pids

    def _become_rank(
        self, order: Message, rank: int, fds: list[int], listener: socket.socket, tie: Callable[[], None]
    ) -> None:
        from pkb.rank.bootstrap import run_rank
        from pkb.rank.builder import Builder
        from pkb.rank.rank import Rank

        status = 1
        try:
            leave_the_nursery()
            tie()
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
        for pid, status in ended_children():
            if pid in self.ranks:
                world, rank = self.ranks.pop(pid)
                code = os.waitstatus_to_exitcode(status)
                self.channel.send({"event": "exit", "world": world, "rank": rank, "code": code})
            for world in [world for world, (keeper, _) in self.cells.items() if keeper == pid]:
                self.cells.pop(world)[1].close()
        for empty in self.sessions.keys() - self.ranks.keys() - sessions_in_use():
            del self.sessions[empty]

    def signal(self, world: int, number: int) -> None:
        for pid in self._ranks_of(world):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def pin(self, world: int, pinned: bool, first: int) -> None:
        """Have each rank run on one core, the same as its like in other worlds; or again wherever there is room."""
        cores = sorted(os.sched_getaffinity(0))
        turn = first % len(cores)
        # Every other one: neighbours are often two halves of the same.
        own = [*cores[turn:], *cores[:turn]][::2]
        ranks = {self.ranks[pid][1]: pid for pid in self._ranks_of(world)}
        if max(ranks, default=0) < len(own):
            for rank, pid in ranks.items():
                keep_to({own[rank]} if pinned else {*cores}, pid)

    def helpers(self, world: int) -> list[str]:
        """The command lines of processes that a world's ranks have started."""
        ranks = self._ranks_of(world)
        keepers = [self.cells[world][0]] if world in self.cells else []
        return [command_line(pid) for pid in family_of(*ranks, *keepers) if pid not in ranks][:_MOST_NAMED]

    def _ranks_of(self, world: int) -> list[int]:
        return [pid for pid, (owner, _) in self.ranks.items() if owner == world]

    def end(self, world: int, kill: bool, trusted: bool) -> list[str]:
        """End a world; the command lines of processes that it had left behind.

        Those that have gone their own way are put down to a world that is not trusted: there is one at a time.
        """
        if kill:
            self._close_cells({world})
            self.signal(world, signal.SIGKILL)
        self._wait_for(world, _GRACE_S)
        self.signal(world, signal.SIGKILL)
        self._wait_for(world, _SWEEP_S)
        owners = {world} if trusted else {world, None}
        left = self.sweep({world}, owners, grace=0 if kill else _GRACE_S)
        self.service.spoilt = self.service.spoilt or kill
        if self.service.spoilt and not self.ranks:
            self.service.restart()
        return left

    def sweep(self, worlds: set[int], owners: Container[int | None], grace: float) -> list[str]:
        """Kill adopted processes of these owners, children of ranks that have ended; close the cells of `worlds`."""
        patience = time.monotonic() + grace
        while self._strays(owners) and time.monotonic() < patience:
            time.sleep(0.02)
            self.reap()
        left = {pid: command_line(pid) for pid in self._strays(owners)[:_MOST_NAMED]}
        self._close_cells(worlds)
        deadline = time.monotonic() + _SWEEP_S
        while ((strays := self._strays(owners)) or worlds & self.cells.keys()) and time.monotonic() < deadline:
            for pid in strays:
                left.setdefault(pid, command_line(pid))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            select.select([self.wakeup], [], [], 0.01)
            self.reap()
        return list(left.values())[:_MOST_NAMED]

    def _close_cells(self, worlds: set[int]) -> None:
        """Kill their keepers, and by that, at once, every process inside; `reap` forgets them."""
        for world in worlds & self.cells.keys():
            os.kill(self.cells[world][0], signal.SIGKILL)

    def _wait_for(self, world: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._ranks_of(world) and time.monotonic() < deadline:
            select.select([self.wakeup], [], [], 0.05)
            self.reap()

    def _strays(self, owners: Container[int | None]) -> list[int]:
        """Children of this process, and of keepers, that nobody expects, and that come from these worlds."""
        keepers = [keeper for keeper, _ in self.cells.values()]
        known = {*self.ranks, *keepers, self.service.pid}
        strays = [pid for pid in children_of(os.getpid(), *keepers) if pid not in known]
        return [pid for pid in strays if self.sessions.get(session_of(pid) or 0) in owners]

    def close(self) -> None:
        # A rank may fork while it is being killed: repeat until none is left.
        for world in {owner for owner, _ in self.ranks.values()}:
            self.signal(world, signal.SIGKILL)
        self.ranks.clear()
        self.service.stop()
        self.sweep(set(self.cells), {None, *self.sessions.values()}, grace=0)
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
