"""The judge's view of one world of ranks: send orders, collect answers within a deadline, or say what went wrong."""

import contextlib
import os
import secrets
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pkb.base.removal import remove_tree
from pkb.base.schema import SchemaError
from pkb.failure import Failure
from pkb.judge.worlds import gate
from pkb.judge.worlds.logs import Logs
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.rank_failures import (
    describe_error,
    describe_exit,
    describe_flood,
    describe_garbled_answer,
    describe_hang,
    describe_overrun,
    describe_overuse,
)
from pkb.problems.problem import Problem
from pkb.protocol import messages as m
from pkb.protocol.channel import Channel, ChannelClosed, ChannelGarbled
from pkb.protocol.profile_files import name_trace
from pkb.record import Verdict
from pkb.settings import Limits

_NUMBER_BITS = 53
_TICK_S = 0.1
_STACKS_S = 0.4
_LOOKS, _POLLING_S = 3, 0.002
"""How often processor time is read while ranks seem idle, and the seconds of it that threads which only poll may use
in between."""
_LEAVE_S = 0.1
"""An order to leave fits into a socket at once, unless its rank does not read."""

A = TypeVar("A", bound=m.Answer)


class World:
    """`size` ranks of one kind, in fresh processes. Use as a context manager: leaving it kills them."""

    def __init__(
        self,
        nursery: Nursery,
        size: int,
        limits: Limits,
        blame: Verdict = Verdict.CRASH,
        sandbox: str = "off",
        builds: bool = False,
        idle_s: float | None = None,
    ):
        self.nursery = nursery
        self.size = size
        self.limits = limits
        self.blame = blame
        """The verdict when a rank misbehaves: CRASH for candidates, ENVIRONMENT for references."""
        self.idle_s = idle_s
        """Ranks that use no processor for so long have hung, long before the deadline; None waits for the deadline."""
        self.number = nursery.new_world()
        self.folder = nursery.folder / f"world-{self.number}"
        self.work = self.folder / "work"
        """Where the ranks write. In namespaces they have another folder there, which the judge does not see."""
        self.shared = nursery.shared / f"world-{self.number}"
        self.build_folder = nursery.folder / f"build-{self.number}" if builds else None
        """Where a world of one builder compiles. It outlives the world: libraries are taken from it when no process can
        change them any more, and the caller removes it."""
        self.started = self.ended = False
        self._used_s = 0.0
        """Seconds that the judge has spent on sending to the ranks and on waiting for them."""
        self._unanswered: list[deque[int]] = [deque() for _ in range(size)]
        """By rank, the numbers of orders that were sent and not answered yet."""
        self.sandbox: dict[str, Any] = {}
        """What is closed to its ranks."""
        self._spawn(sandbox)

    def _spawn(self, sandbox: str) -> None:
        # Whatever fails in between, a full disk or a nursery that has gone, nothing of a world that never was stays.
        with contextlib.ExitStack() as undo:
            undo.callback(self._remove_folders)
            for folder in (self.folder, self.work, self.shared, self.build_folder):
                if folder:
                    folder.mkdir()
            for rank in range(self.size):
                (self.folder / name_trace(rank)).touch()
            theirs = self._open_streams(undo)
            try:
                answer = cast(m.Spawned, self.nursery.order(self._describe_spawn(sandbox), theirs))
            finally:
                for fd in theirs:
                    os.close(fd)
            undo.pop_all()
        if answer.refused:
            self.end(kill=True)
            raise Failure(Verdict.ENVIRONMENT, answer.refused, check="sandbox")
        self.sandbox = answer.sandbox

    def _open_streams(self, undo: contextlib.ExitStack) -> list[int]:
        """Open a channel and a log for each rank; return the ranks' ends, each rank's channel before its log."""
        pairs = [socket.socketpair() for _ in range(self.size)]
        self.channels = [Channel(ours) for ours, _ in pairs]
        with contextlib.ExitStack() as pipes:
            ends = [_open_pipe(pipes) for _ in range(self.size)]
            self.logs = Logs([read for read, _ in ends], self.limits.log_bytes)
            pipes.pop_all()
        undo.callback(self._close_streams)
        return [fd for (_, sock), (_, write) in zip(pairs, ends, strict=True) for fd in (sock.detach(), write)]

    def _describe_spawn(self, sandbox: str) -> m.Spawn:
        platform = self.nursery.platform
        return m.Spawn(
            world=self.number,
            size=self.size,
            platform=platform.name,
            folder=str(self.folder),
            work=str(self.work),
            shared=str(self.shared),
            memory=self.limits.memory_bytes or platform.compute_memory_limit(self.size),
            build_folder=str(self.build_folder or ""),
            for_candidate=self.blame is Verdict.CRASH,
            sandbox=sandbox,
            exposed=platform.list_writable_paths(self.nursery.folder),
            hidden=sorted(self.nursery.hidden),
        )

    def start(self) -> None:
        """Wait until every rank has joined its process group; where one cannot, end them all."""
        if self.started:
            return
        try:
            self._collect(m.Ready, "start", self.limits.start_s)
            self.started = True
        except BaseException as error:
            self.end(kill=True)
            if isinstance(error, Failure):
                error.verdict = Verdict.ENVIRONMENT
            raise

    def _signal(self, number: int) -> None:
        self.nursery.order(m.SignalRanks(self.number, number))

    def pin(self, pinned: bool) -> None:
        """Pin each rank to one core of the host, the same as in other pinned worlds, if there are enough; or unpin."""
        # Other judges on this machine should use other cores.
        self.nursery.order(m.PinRanks(self.number, pinned, first=os.getpid()))

    def copy_problem(self, problem: Problem) -> Path:
        """Copy a problem's files to where the ranks see them: in a sandbox, they see nothing else outside their folder.

        Return the copy of the problem's own file.
        """
        folder = self.folder / "problem"
        for file in problem.list_files():
            copy = folder / file.relative_to(problem.root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
        return folder / problem.path.relative_to(problem.root)

    def ask(self, order: m.Order | Callable[[int], m.Order], phase: str, seconds: float) -> list[Any]:
        """Send every rank its order; return every rank's answer, of the class that the order names."""
        self.send(order)
        return self.collect(order, phase, seconds)

    def send(self, order: m.Order | Callable[[int], m.Order], tensors: Sequence[Sequence[Tensor]] = ()) -> None:
        """Send every rank its order, and its tensors if there are any. `collect` must follow before the next order.

        Raise Failure when a rank does not read what it is sent within the time of a trial.
        """
        seconds = self.limits.trial_s
        deadline = time.monotonic() + seconds
        for rank, channel in enumerate(self.channels):
            message = order if isinstance(order, m.Order) else order(rank)
            # Drawn, so that no rank can answer an order that it has not received.
            number = secrets.randbits(_NUMBER_BITS)
            self._unanswered[rank].append(number)
            try:
                with self._count_time():
                    channel.send(m.encode(message, number), tensors[rank] if tensors else (), deadline=deadline)
            except ChannelClosed:
                # A rank that has gone is noticed while collecting, with its exit status.
                continue
            except TimeoutError:
                raise self._describe_hang("reading what the judge sent", [rank], seconds) from None

    def collect(
        self, order: m.Order | type[m.Order] | Callable[[int], m.Order], phase: str, seconds: float
    ) -> list[Any]:
        """Return the answers of all ranks to an order that was sent."""
        kind = order if isinstance(order, m.Order | type) else order(0)
        return self._collect(cast(m.Order, kind).answer, phase, seconds)

    def _collect(self, kind: type[A], phase: str, seconds: float) -> list[A]:
        if self.blame is Verdict.CRASH and self._used_s > self.limits.total_s:
            raise describe_overrun(self.blame, phase, self.limits.total_s)
        with self._count_time():
            return self._wait_for_all(kind, phase, seconds)

    @contextlib.contextmanager
    def _count_time(self) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self._used_s += time.monotonic() - start

    def _wait_for_all(self, kind: type[A], phase: str, seconds: float) -> list[A]:
        deadline = time.monotonic() + seconds
        answers: dict[int, A] = {}
        watch = IdleWatch(self)
        while len(answers) < self.size:
            silent = [rank for rank in range(self.size) if rank not in answers]
            self._raise_if_flooded()
            if time.monotonic() > deadline or watch.are_idle(silent):
                raise self._describe_hang(phase, silent, seconds)
            for rank in self._wait_for_answers(silent):
                answers[rank] = self._receive(kind, rank, phase, deadline, seconds)
            self._raise_if_gone(phase, [rank for rank in silent if rank not in answers])
        return [answers[rank] for rank in range(self.size)]

    def _wait_for_answers(self, ranks: list[int]) -> list[int]:
        """Return the ranks that have something to say, after a tick at the latest."""
        waiting = {self.channels[rank].fileno(): rank for rank in ranks}
        readable, _, _ = select.select([*waiting, self.nursery.channel.fileno()], [], [], _TICK_S)
        if self.nursery.channel.fileno() in readable:
            self.nursery.listen()
        return [waiting[fd] for fd in readable if fd in waiting]

    def _receive(self, kind: type[A], rank: int, phase: str, deadline: float, seconds: float) -> A:
        try:
            header = gate.receive_header(self.channels[rank], deadline)
            answer = gate.parse_answer(kind, header, self._take_number(rank))
        except ChannelClosed:
            raise self._describe_exit(rank, phase) from None
        except TimeoutError:
            raise self._describe_hang(phase, [rank], seconds) from None
        except (ChannelGarbled, SchemaError) as error:
            raise describe_garbled_answer(self.blame, rank, phase, error) from error
        if isinstance(answer, m.ErrorReport):
            raise describe_error(self.blame, rank, phase, answer)
        return answer

    def _take_number(self, rank: int) -> int | None:
        """Return the number of the oldest order that this rank has not answered; None for its first message."""
        unanswered = self._unanswered[rank]
        return unanswered.popleft() if unanswered else None

    def receive_tensors(
        self, rank: int, specs: Sequence[tuple[Sequence[int], Any]], phase: str, deadline: float
    ) -> list[Tensor]:
        """Receive the tensors, by shape and dtype, that follow a rank's answer."""
        try:
            with self._count_time():
                return gate.receive_tensors(self.channels[rank], specs, deadline)
        except (ChannelClosed, SchemaError, TimeoutError) as error:
            raise describe_garbled_answer(self.blame, rank, phase, error) from error

    def _raise_if_gone(self, phase: str, ranks: list[int]) -> None:
        for rank in ranks:
            # Its last answer may still be in the socket: it says more than an exit code.
            if (self.number, rank) in self.nursery.exits and not self._wait_for_answers([rank]):
                raise self._describe_exit(rank, phase)

    def _raise_if_flooded(self) -> None:
        if (rank := self.logs.flooded) is not None:
            raise describe_flood(self.blame, rank, self.limits.log_bytes >> 20, self.logs.tail(rank, 500))

    def _describe_exit(self, rank: int, phase: str) -> Failure:
        code = self._find_exit_code(rank)
        if overuse := self.nursery.overuse.get(self.number):
            return describe_overuse(self.blame, phase, overuse)
        log, stack = self.logs.split_fatal(rank, 2000)
        return describe_exit(self.blame, rank, phase, code, log, stack)

    def _find_exit_code(self, rank: int) -> int | None:
        deadline = time.monotonic() + 1.0
        while (self.number, rank) not in self.nursery.exits and time.monotonic() < deadline:
            readable, _, _ = select.select([self.nursery.channel], [], [], _TICK_S)
            if readable:
                self.nursery.listen()
        return self.nursery.exits.get((self.number, rank))

    def settle(self, seconds: float) -> bool:
        """Take in the answers that are still due after a Failure; return whether all ranks gave theirs.

        None of these answers may be followed by tensors.
        """
        deadline, watch = time.monotonic() + seconds, IdleWatch(self)
        while due := [rank for rank in range(self.size) if self._unanswered[rank]]:
            if time.monotonic() > deadline or watch.are_idle(due):
                return False
            for rank in self._wait_for_answers(due):
                try:
                    gate.receive_header(self.channels[rank], deadline)
                except (ChannelClosed, ChannelGarbled, TimeoutError):
                    return False
                self._take_number(rank)
        return True

    def _describe_hang(self, phase: str, silent: list[int], seconds: float) -> Failure:
        if self.idle_s is None:
            self._signal(signal.SIGUSR1)
            time.sleep(_STACKS_S)
        return describe_hang(self.blame, phase, seconds, {rank: self.logs.stack(rank) for rank in silent})

    def list_helpers(self) -> list[str]:
        """Return the command lines of processes that ranks have started and that still run."""
        return self.nursery.list_helpers(self.number)

    def measure_usage(self) -> NDArray[np.float64]:
        """Return, by rank, the processor seconds used and the seconds spent waiting for a core; 0 for ranks that ended.

        The nursery measures them: no candidate can reach that.
        """
        usage = cast(m.Usage, self.nursery.order(m.MeasureUsage(self.number)))
        return np.array([usage.seconds.get(rank, (0.0, 0.0)) for rank in range(self.size)])

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.end(kill=True)

    def end(self, kill: bool = False) -> list[str]:
        """Let the ranks leave, or kill them; return the command lines of processes that they had left behind."""
        if self.ended:
            return []
        # Once only, even if the nursery has gone.
        self.ended = True
        if not kill:
            self.leave()
        try:
            trusted = self.blame is Verdict.ENVIRONMENT
            answer = cast(m.ProcessList, self.nursery.order(m.EndWorld(self.number, kill, trusted)))
        finally:
            self._close()
        return answer.command_lines

    def abandon(self) -> None:
        """Let go of ranks that end with their nursery."""
        if not self.ended:
            self.ended = True
            self._close()

    def dismiss(self) -> None:
        """Let trusted ranks leave, without waiting for them where that takes long and disturbs nothing."""
        if not self.nursery.platform.count_spare_worlds(self.size):
            self.end()
        elif not self.ended:
            self.release_memory()
            self.ended = True
            self.leave()
            self._close()

    def release_memory(self) -> None:
        """Have the ranks free the memory of calls and results, and stop what compiled for them."""
        self.ask(m.ReleaseMemory(), "the end of its calls", self.limits.trial_s)

    def leave(self) -> None:
        """Have the ranks leave, without waiting for it."""
        for channel in self.channels:
            with contextlib.suppress(ChannelClosed, TimeoutError):
                channel.send(m.encode(m.Leave()), deadline=time.monotonic() + _LEAVE_S)

    def _close(self) -> None:
        self._close_streams()
        self._remove_folders()
        for rank in range(self.size):
            self.nursery.exits.pop((self.number, rank), None)
        self.nursery.overuse.pop(self.number, None)

    def _close_streams(self) -> None:
        for channel in self.channels:
            channel.close()
        self.logs.close()

    def _remove_folders(self) -> None:
        for folder in (self.folder, self.shared):
            remove_tree(folder)
        if self.build_folder and not self.started:
            remove_tree(self.build_folder)


class IdleWatch:
    """Notices, where a world has an `idle_s`, that ranks wait for something that never comes."""

    def __init__(self, world: World):
        self._world = world
        self._since = self._looked = time.monotonic()
        self._used: NDArray[np.float64] | None = None

    def are_idle(self, ranks: list[int]) -> bool:
        """Whether none of these ranks has computed for the world's `idle_s`."""
        idle_s, now = self._world.idle_s, time.monotonic()
        if idle_s is None or now - self._looked < idle_s / _LOOKS:
            return False
        used, self._looked = self._world.measure_usage()[ranks, 0], now
        if self._used is None or used.shape != self._used.shape or (used - self._used).max() > _POLLING_S:
            self._since = now
        self._used = used
        return now - self._since >= idle_s


def _open_pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    """Open a pipe whose ends the stack closes."""
    ends = os.pipe()
    for end in ends:
        stack.callback(os.close, end)
    return ends
