"""The judge's view of one world of ranks: ask all, hear all, within a deadline, or say what went wrong."""

import contextlib
import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pkb.failure import Failure
from pkb.judge.worlds.logs import Logs
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.rank_failures import flooded, gone, hung, parse_error, raised
from pkb.protocol.channel import Channel, ChannelClosed, ChannelGarbled, Message
from pkb.record import Verdict
from pkb.settings import Limits

_TICK_S = 0.1
_STACKS_S = 0.4


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
    ):
        self.nursery = nursery
        self.size = size
        self.limits = limits
        self.blame = blame
        """The verdict when a rank misbehaves: CRASH for candidates, ENVIRONMENT for references."""
        self.number = nursery.new_world()
        self.folder = nursery.folder / f"world-{self.number}"
        self.shared = nursery.shared / f"world-{self.number}"
        self.workshop = nursery.folder / f"workshop-{self.number}" if builds else None
        """Of a world whose one process compiles, without peers or a GPU. It outlives the world: what was made is taken
        from here when nobody can change it any more, and the folder removed, by whoever asked for it."""
        self.started = self.paused = self.ended = False
        self.sandbox: dict[str, Any] = {}
        """What is closed to its ranks."""
        self._spawn(sandbox)

    def _spawn(self, sandbox: str) -> None:
        self.folder.mkdir()
        self.shared.mkdir()
        workshop = [str(self.workshop)] if self.workshop else []
        for folder in workshop:
            os.mkdir(folder)
        pairs = [socket.socketpair() for _ in range(self.size)]
        pipes = [os.pipe() for _ in range(self.size)]
        self.channels = [Channel(ours) for ours, _ in pairs]
        self.logs = Logs([read for read, _ in pipes], self.limits.log_bytes)
        theirs = [fd for (_, sock), (_, write) in zip(pairs, pipes, strict=True) for fd in (sock.fileno(), write)]
        memory = self.limits.memory_bytes or self.nursery.platform.memory_limit(self.size)
        order = {
            "do": "spawn",
            "world": self.number,
            "size": self.size,
            "platform": self.nursery.platform.name,
            "folder": str(self.folder),
            "shared": str(self.shared),
            "memory": memory,
            "builds": bool(workshop),
            "for_candidate": self.blame is Verdict.CRASH,
            "sandbox": sandbox,
            "exposed": [*self.nursery.platform.exposed(self.nursery.folder), *workshop],
        }
        answer = self.nursery.order(order, theirs)
        for (_, sock), (_, write) in zip(pairs, pipes, strict=True):
            sock.close()
            os.close(write)
        if refused := answer.get("refused"):
            self.end(kill=True)
            raise Failure(Verdict.ENVIRONMENT, refused, check="sandbox")
        self.sandbox = answer.get("facts", {})

    def start(self) -> None:
        """Wait until every rank has joined its process group; where one cannot, end them all."""
        if self.started:
            return
        try:
            self.resume()
            self.hear("start", self.limits.start_s)
            self.started = True
        except BaseException as error:
            self.end(kill=True)
            if isinstance(error, Failure):
                error.verdict = Verdict.ENVIRONMENT
            raise

    def pause(self) -> None:
        """Hold its birth up, if that is not over, so that it takes nothing from others."""
        if not (self.started or self.paused):
            self.paused = True
            self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.paused:
            self.paused = False
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        self.nursery.order({"do": "signal", "world": self.number, "number": number})

    def pin(self, pinned: bool) -> None:
        """Keep each rank to one core of the host, the same as in other worlds that are pinned, if there are enough."""
        # Other judges on this machine are to have others.
        self.nursery.order({"do": "pin", "world": self.number, "pinned": pinned, "first": os.getpid()})

    def given(self, file: Path) -> Path:
        """A copy where its ranks see it: in a sandbox nothing outside their folder can be counted on."""
        copy = self.folder / file.name
        copy.write_bytes(file.read_bytes())
        return copy

    def ask(
        self,
        message: Message | Callable[[int], Message],
        phase: str,
        seconds: float,
        tensors: Sequence[Sequence[Tensor]] = (),
    ) -> list[Message]:
        """Send every rank its message, and its tensors if there are any; wait for every rank's answer."""
        self.tell(message, tensors)
        return self.hear(phase, seconds)

    def tell(self, message: Message | Callable[[int], Message], tensors: Sequence[Sequence[Tensor]] = ()) -> None:
        """The same without waiting: the answers must be heard before anything else is asked."""
        for rank, channel in enumerate(self.channels):
            # A rank that has gone is noticed while listening, with its exit status.
            with contextlib.suppress(ChannelClosed):
                channel.send(message(rank) if callable(message) else message, tensors[rank] if tensors else ())

    def hear(self, phase: str, seconds: float) -> list[Message]:
        deadline = time.monotonic() + seconds
        answers: dict[int, Message] = {}
        while len(answers) < self.size:
            silent = [rank for rank in range(self.size) if rank not in answers]
            self._raise_if_flooded()
            if time.monotonic() > deadline:
                raise self._hang(phase, silent, seconds)
            for rank in self._readable(silent):
                answers[rank] = self._receive(rank, phase, deadline, seconds)
            self._raise_if_gone(phase, [rank for rank in silent if rank not in answers])
        return [answers[rank] for rank in range(self.size)]

    def _readable(self, ranks: list[int]) -> list[int]:
        waiting = {self.channels[rank].fileno(): rank for rank in ranks}
        readable, _, _ = select.select([*waiting, self.nursery.channel.fileno()], [], [], _TICK_S)
        if self.nursery.channel.fileno() in readable:
            self.nursery.listen()
        return [waiting[fd] for fd in readable if fd in waiting]

    def _receive(self, rank: int, phase: str, deadline: float, seconds: float) -> Message:
        try:
            answer = self.channels[rank].receive(deadline)
        except ChannelClosed:
            raise self._gone(rank, phase) from None
        except TimeoutError:
            raise self._hang(phase, [rank], seconds) from None
        except ChannelGarbled as error:
            raise Failure(self.blame, f"rank {rank} answered with {error} in {phase}", rank=rank, phase=phase) from None
        if "error" in answer:
            raise raised(self.blame, rank, phase, parse_error(answer["error"]))
        return answer

    def _raise_if_gone(self, phase: str, ranks: list[int]) -> None:
        for rank in ranks:
            # Its last words may still be in the socket: they say more than an exit code.
            if (self.number, rank) in self.nursery.exits and not self._readable([rank]):
                raise self._gone(rank, phase)

    def _raise_if_flooded(self) -> None:
        if (rank := self.logs.flooded) is not None:
            raise flooded(self.blame, rank, self.limits.log_bytes >> 20, self.logs.tail(rank, 500))

    def _gone(self, rank: int, phase: str) -> Failure:
        return gone(self.blame, rank, phase, self._exit_code(rank), self.logs.tail(rank, 2000))

    def _exit_code(self, rank: int) -> int | None:
        deadline = time.monotonic() + 1.0
        while (self.number, rank) not in self.nursery.exits and time.monotonic() < deadline:
            readable, _, _ = select.select([self.nursery.channel], [], [], _TICK_S)
            if readable:
                self.nursery.listen()
        return self.nursery.exits.get((self.number, rank))

    def _hang(self, phase: str, silent: list[int], seconds: float) -> Failure:
        self._signal(signal.SIGUSR1)
        time.sleep(_STACKS_S)
        return hung(self.blame, phase, seconds, {rank: self.logs.stack(rank) for rank in silent})

    def helpers(self) -> list[str]:
        """Command lines of processes that ranks have started and that are still there."""
        return self.nursery.order({"do": "look", "world": self.number})["helpers"]

    def usage(self) -> NDArray[np.float64]:
        """By rank, the seconds of processor that it has had, and those that it stood in line for one; 0 if it has gone.

        As the nursery sees it: no candidate can reach that.
        """
        found = self.nursery.order({"do": "usage", "world": self.number})["usage"]
        return np.array([found.get(str(rank), (0.0, 0.0)) for rank in range(self.size)])

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.end(kill=True)

    def end(self, kill: bool = False) -> list[str]:
        """Let the ranks leave, or kill them; the command lines of processes that they had left behind."""
        if self.ended:
            return []
        # Once only, even if the nursery has gone.
        self.ended = True
        if not kill:
            self.leave()
        trusted = self.blame is Verdict.ENVIRONMENT
        answer = self.nursery.order({"do": "end", "world": self.number, "kill": kill, "trusted": trusted})
        self._close()
        return answer["left"]

    def dismiss(self) -> None:
        """Let ranks that are trusted leave, in their own time where that takes long and disturbs nobody."""
        if not self.nursery.platform.spare_worlds(self.size):
            self.end()
        elif not self.ended:
            self.let_go()
            self.ended = True
            self.leave()
            self._close()

    def let_go(self) -> None:
        """Have the ranks hand back the memory of calls and results, and what compiled for them."""
        self.ask({"do": "let_go"}, "the end of its calls", self.limits.trial_s)

    def leave(self) -> None:
        """Have the ranks leave, without waiting for it."""
        self.resume()
        for channel in self.channels:
            with contextlib.suppress(ChannelClosed):
                channel.send({"do": "leave"})

    def _close(self) -> None:
        for channel in self.channels:
            channel.close()
        self.logs.close()
        for folder in (self.folder, self.shared):
            shutil.rmtree(folder, ignore_errors=True)
        for rank in range(self.size):
            self.nursery.exits.pop((self.number, rank), None)


def garbled(world: World, rank: int, phase: str) -> Failure:
    """A rank that did not answer as agreed."""
    return Failure(
        world.blame,
        f"rank {rank} broke the judge's protocol ({phase}); a candidate must leave file descriptors alone that it "
        "did not open",
        rank=rank,
        phase=phase,
        check="protocol",
    )
