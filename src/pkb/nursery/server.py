"""The fork server: it forks ranks, reports those that end, and adopts and kills what candidates leave behind."""

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Container
from functools import partial
from pathlib import Path
from typing import Any

from pkb.base.removal import remove_tree
from pkb.nursery.forking import execute_rank, preload_modules, reset_after_fork
from pkb.nursery.mps import Service
from pkb.nursery.overuse import INTERVAL_S, LimitedWorld
from pkb.protocol import messages as m
from pkb.protocol.channel import Channel, ChannelClosed
from pkb.protocol.profile_files import name_trace
from pkb.sandbox.cgroup import Cgroup, make_cgroup
from pkb.sandbox.confine import Domain, confine, count_allowed_processes
from pkb.sandbox.processes import (
    close_other_fds,
    die_with_parent,
    die_with_subreaper,
    find_session,
    list_children,
    list_descendants,
    list_sessions,
    pin_process,
    read_command_line,
    read_cpu_usage,
    reap_children,
)
from pkb.sandbox.quota import choose_quota, format_bytes
from pkb.sandbox.visible_paths import Ours

_GRACE_S = 0.5
_SWEEP_S = 10.0
_MOST_NAMED = 20
_CONFINE_S = 30.0


class NurseryServer:
    """Worlds by number, and the ranks alive in each."""

    def __init__(self, channel: Channel, settings: m.NurserySettings):
        self.channel, self.settings = channel, settings
        self.service = Service(settings.service)
        self.ranks: dict[int, tuple[int, int]] = {}
        """pid: (world, rank)"""
        self.sessions: dict[int, int] = {}
        """Session of a rank: its world. Forgotten once the session is empty: its number may then be used again."""
        self.inits: dict[int, tuple[int, Channel]] = {}
        """world: the init process of its PID namespace, and the channel whose closing ends that process"""
        self.limited: dict[int, LimitedWorld] = {}
        """world: its quota, in a sandbox"""
        self.overuse: dict[int, str] = {}
        """world: the limit that it exceeded"""
        self.wakeup, wakeup_write = os.pipe()
        os.set_blocking(wakeup_write, False)
        os.set_blocking(self.wakeup, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Leave by way of close().
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        self._candidate_modules = settings.preloaded_for_candidates
        self._handlers: dict[type[m.Order], Callable[[Any, list[int]], m.Answer | None]] = {
            m.Spawn: self.spawn,
            m.SignalRanks: lambda order, _: self.signal(order.world, order.number),
            m.PinRanks: lambda order, _: self.pin(order),
            m.ListHelpers: lambda order, _: m.ProcessList(self.list_helpers(order.world)),
            m.MeasureUsage: lambda order, _: self.measure_usage(order.world),
            m.Preload: lambda order, _: preload_modules(order.modules),
            m.EndWorld: lambda order, _: m.ProcessList(self.end(order)),
        }

    def serve(self) -> None:
        """Carry out orders until the judge goes away. Whatever ends this, no process and no folder is left."""
        try:
            self.channel.send(m.encode(m.Ready()))
            while True:
                seconds = INTERVAL_S if self.limited else None
                readable, _, _ = select.select([self.channel.fileno(), self.wakeup], [], [], seconds)
                self.kill_overusers()
                if self.wakeup in readable:
                    self.reap()
                if self.channel.fileno() in readable:
                    self.obey(*self.channel.receive_with_fds())
        finally:
            self.close()

    def obey(self, header: m.Header, fds: list[int]) -> None:
        """Carry out one order, and answer it under its number."""
        order = m.decode_order(header)
        answer = self._handlers[type(order)](order, fds) or m.Answer()
        self.channel.send(m.encode(answer, header[m.ORDER_NUMBER]))

    def spawn(self, order: m.Spawn, fds: list[int]) -> m.Spawned:
        """Fork one process per rank; `fds` are each rank's channel and log, in turn."""
        self.service.wait_until_up()
        if order.for_candidate:
            self._preload_for_candidates()
        try:
            ranks, facts = (
                self._fork_confined(order, fds) if order.sandbox != "off" else (self._fork_ranks(order, fds), {})
            )
        except _Refused as refusal:
            return m.Spawned(refused=str(refusal))
        finally:
            for fd in fds:
                os.close(fd)
        self.ranks |= {pid: (order.world, rank) for rank, pid in enumerate(ranks)}
        self.sessions |= dict.fromkeys(ranks, order.world)
        return m.Spawned(sandbox=facts)

    def _preload_for_candidates(self) -> None:
        """Import what only candidates need, before the first of them."""
        if self._candidate_modules:
            preload_modules(self._candidate_modules)
            self._candidate_modules = []

    def _fork_confined(self, order: m.Spawn, fds: list[int]) -> tuple[list[int], dict[str, Any]]:
        """Have a process that has confined itself fork the ranks; adopt the ranks when it has gone."""
        ours, theirs = map(Channel, socket.socketpair())
        domain, limited = self._limit_world(order)
        pid = os.fork()
        if pid == 0:
            self._confine_and_fork(order, fds, theirs, domain, limited.cgroup)
        theirs.close()
        try:
            found = ours.receive(time.monotonic() + _CONFINE_S)
        except (ChannelClosed, TimeoutError):
            found = {"refused": "the process that forks the ranks broke down"}
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if init := found.get("init"):
            self.inits[order.world] = (init, ours)
        else:
            ours.close()
        if refused := found.get("refused"):
            raise _Refused(refused)
        return found["ranks"], self._complete_facts(found["facts"], order)

    def _limit_world(self, order: m.Spawn) -> tuple[Domain, LimitedWorld]:
        """Return what a world may reach, and its quota, under which it is watched from now on."""
        quota, processes = choose_quota(order.size, order.memory), count_allowed_processes(order.size)
        cgroup = make_cgroup(str(order.world), quota.memory, processes)
        own = [order.work, order.shared]
        traces = [str(Path(order.folder, name_trace(rank))) for rank in range(order.size)]
        builds = [order.build_folder] if order.build_folder else []
        is_private = order.sandbox == "namespaces"
        self.limited[order.world] = LimitedWorld(quota, cgroup, builds if is_private else [*own, *builds])
        domain = Domain(
            quota=quota,
            most_processes=processes,
            readable=[order.folder],
            writable=[*traces, *builds, *order.exposed],
            private=own,
            hidden=[*_list_common_folders(order.folder, *own), *order.hidden],
            ours=Ours.PROGRAM if self.settings.execute else Ours.LIBRARIES,
            allows_shared_memory=cgroup is not None,
        )
        return domain, self.limited[order.world]

    def _complete_facts(self, facts: dict[str, Any], order: m.Spawn) -> dict[str, Any]:
        """Add what limits memory and files from outside of the world."""
        limited = self.limited[order.world]
        quota = limited.quota
        means = "cgroup" if limited.cgroup else "rlimit and watch" if order.memory else "watch"
        watched = f"limited to {format_bytes(quota.file_bytes)} and {quota.most_files} files by watch"
        memory = {"memory": f"limited to {format_bytes(quota.memory)} by {means}"}
        if limited.cgroup:
            facts["most_processes"] = count_allowed_processes(order.size)
        return {"writing": watched, **facts, **memory}

    def _confine_and_fork(
        self, order: m.Spawn, fds: list[int], channel: Channel, domain: Domain, cgroup: Cgroup | None
    ) -> None:
        try:
            reset_after_fork()
            close_other_fds({*fds, channel.fileno(), 0, 1, 2})
            root = Path(order.folder).parent / "root"
            root.mkdir(exist_ok=True)
            if cgroup:
                cgroup.enter()
            init, facts = confine(order.sandbox, str(root), domain, channel.fileno())
            # In a PID namespace, ranks die with its init.
            tie = partial(die_with_subreaper, os.getpid()) if init is None else lambda: None
            channel.send({"ranks": self._fork_ranks(order, fds, tie), "init": init, "facts": facts})
            signal.pause()
        except OSError as error:
            channel.send({"refused": f"{error.strerror or error} {error.filename or ''}".strip()})
        finally:
            os._exit(0)

    def _fork_ranks(self, order: m.Spawn, fds: list[int], tie: Callable[[], None] = die_with_parent) -> list[int]:
        """Fork the ranks of a world from this process; return their process ids."""
        # Not in the nursery itself: a network namespace has a loopback of its own.
        listener = socket.create_server(("127.0.0.1", 0))
        pids = []
        for rank in range(order.size):
            pid = os.fork()
            if pid == 0:
                self._become_rank(order, rank, fds, listener, tie)
            pids.append(pid)
        listener.close()
        return pids

    def _become_rank(
        self, order: m.Spawn, rank: int, fds: list[int], listener: socket.socket, tie: Callable[[], None]
    ) -> None:
        """Run a rank in this process, a fork of the nursery, and end it."""
        status = 1
        try:
            from pkb.rank.bootstrap import run_rank
            from pkb.rank.builder import Builder
            from pkb.rank.rank import Rank

            reset_after_fork()
            tie()
            channel, log = fds[2 * rank : 2 * rank + 2]
            port = listener.getsockname()[1]
            close_other_fds({channel, log, 0, 1, 2, *([listener.fileno()] if rank == 0 else [])})
            kind = Builder if order.build_folder else Rank
            start = execute_rank if self.settings.execute and kind is Rank else partial(run_rank, kind)
            start(m.encode(order), rank, port, channel, log, listener.detach() if rank == 0 else None)
            status = 0
        finally:
            # Never run the nursery's own clean-up in a fork of it.
            os._exit(status)

    def reap(self) -> None:
        """Report ranks that have ended, and forget what has gone."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wakeup, 4096)
        for pid, status in reap_children():
            if pid in self.ranks:
                world, rank = self.ranks.pop(pid)
                code, overuse = os.waitstatus_to_exitcode(status), self._explain_kill(world)
                self.channel.send(m.encode(m.RankExited(world, rank, code, overuse)))
            for world in [world for world, (init, _) in self.inits.items() if init == pid]:
                self.inits.pop(world)[1].close()
        for empty in self.sessions.keys() - self.ranks.keys() - list_sessions():
            del self.sessions[empty]

    def _explain_kill(self, world: int) -> str:
        """Return the limit that a world was killed for; empty where it was not."""
        limited = self.limited.get(world)
        return self.overuse.get(world) or (limited and limited.explain_kill()) or ""

    def kill_overusers(self) -> None:
        """Kill all worlds that use more than their quota."""
        for world, limited in self.limited.items():
            ranks = {pid: self.ranks[pid][1] for pid in self._list_ranks(world)}
            overuse = limited.find_overuse(ranks, partial(self._list_processes, world)) if ranks else None
            if overuse:
                self.overuse[world] = overuse
                # At once: a rank that misses a peer would say so.
                self.signal(world, signal.SIGSTOP)
                self._kill_inits({world})
                self.signal(world, signal.SIGKILL)

    def _list_processes(self, world: int) -> list[int]:
        """Return the ranks of a world, and all processes that they started and that still run."""
        ranks = self._list_ranks(world)
        inits = [self.inits[world][0]] if world in self.inits else []
        strays = [] if inits else self._list_strays({world, None})
        return [*{*ranks, *strays, *list_descendants(*ranks, *inits, *strays)}]

    def signal(self, world: int, number: int) -> None:
        for pid in self._list_ranks(world):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def pin(self, order: m.PinRanks) -> None:
        """Pin rank r of every world to the same core; or unpin."""
        cores = sorted(os.sched_getaffinity(0))
        turn = order.first % len(cores)
        # Every other core: neighbours are often two threads of the same.
        own = [*cores[turn:], *cores[:turn]][::2]
        ranks = {self.ranks[pid][1]: pid for pid in self._list_ranks(order.world)}
        if max(ranks, default=0) < len(own):
            for rank, pid in ranks.items():
                pin_process({own[rank]} if order.pinned else {*cores}, pid)

    def list_helpers(self, world: int) -> list[str]:
        """Return the command lines of processes that a world's ranks have started."""
        ranks = self._list_ranks(world)
        inits = [self.inits[world][0]] if world in self.inits else []
        return [read_command_line(pid) for pid in list_descendants(*ranks, *inits) if pid not in ranks][:_MOST_NAMED]

    def measure_usage(self, world: int) -> m.Usage:
        return m.Usage({self.ranks[pid][1]: read_cpu_usage(pid) for pid in self._list_ranks(world)})

    def _list_ranks(self, world: int) -> list[int]:
        return [pid for pid, (owner, _) in self.ranks.items() if owner == world]

    def end(self, order: m.EndWorld) -> list[str]:
        """End a world; return the command lines of processes that it had left behind.

        Daemonised processes are blamed on the one untrusted world.
        """
        if order.kill:
            self._kill_inits({order.world})
            self.signal(order.world, signal.SIGKILL)
        self._wait_for(order.world, _GRACE_S)
        self.signal(order.world, signal.SIGKILL)
        self._wait_for(order.world, _SWEEP_S)
        owners = {order.world} if order.trusted else {order.world, None}
        left = self.sweep({order.world}, owners, grace=0 if order.kill else _GRACE_S)
        self._forget_limits({order.world})
        self.service.needs_restart = self.service.needs_restart or order.kill
        if self.service.needs_restart and not self.ranks:
            self.service.restart()
        return left

    def sweep(self, worlds: set[int], owners: Container[int | None], grace: float) -> list[str]:
        """Kill the adopted processes of these owners, children of ranks that have ended, and the inits of `worlds`."""
        patience = time.monotonic() + grace
        while self._list_strays(owners) and time.monotonic() < patience:
            time.sleep(0.02)
            self.reap()
        left = {pid: read_command_line(pid) for pid in self._list_strays(owners)[:_MOST_NAMED]}
        self._kill_inits(worlds)
        deadline = time.monotonic() + _SWEEP_S
        while ((strays := self._list_strays(owners)) or worlds & self.inits.keys()) and time.monotonic() < deadline:
            for pid in strays:
                left.setdefault(pid, read_command_line(pid))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            select.select([self.wakeup], [], [], 0.01)
            self.reap()
        return list(left.values())[:_MOST_NAMED]

    def _forget_limits(self, worlds: set[int]) -> None:
        for world in worlds & self.limited.keys():
            if cgroup := self.limited.pop(world).cgroup:
                cgroup.remove()
            self.overuse.pop(world, None)

    def _kill_inits(self, worlds: set[int]) -> None:
        """Kill the inits of these worlds, and with them every process in their namespaces; `reap` forgets them."""
        for world in worlds & self.inits.keys():
            os.kill(self.inits[world][0], signal.SIGKILL)

    def _wait_for(self, world: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._list_ranks(world) and time.monotonic() < deadline:
            select.select([self.wakeup], [], [], 0.05)
            self.reap()

    def _list_strays(self, owners: Container[int | None]) -> list[int]:
        """Return unexpected children of this process, and of inits, that come from these worlds."""
        inits = [init for init, _ in self.inits.values()]
        known = {*self.ranks, *inits, self.service.pid}
        strays = [pid for pid in list_children(os.getpid(), *inits) if pid not in known]
        return [pid for pid in strays if self.sessions.get(find_session(pid) or 0) in owners]

    def close(self) -> None:
        """Kill every descendant, and remove the judge's folders."""
        try:
            # A rank may fork while it is being killed: repeat until none is left.
            for world in {owner for owner, _ in self.ranks.values()}:
                self.signal(world, signal.SIGKILL)
            self.ranks.clear()
            self.service.stop()
            self.sweep(set(self.inits), {None, *self.sessions.values()}, grace=0)
            self._forget_limits(set(self.limited))
        finally:
            for folder in self.settings.folders:
                remove_tree(folder)


def _list_common_folders(*folders: str) -> list[str]:
    """Return the folders in which these lie, and in which other worlds and other judges have theirs."""
    return sorted({str(outer) for folder in folders for outer in Path(folder).parents[:2]})


class _Refused(Exception):
    """The sandbox could not be set up."""
