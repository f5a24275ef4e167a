"""The judge's handle on the nursery: it starts the process, passes orders, and hears which ranks have ended."""

import itertools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar, cast

from pkb.base.removal import remove_tree
from pkb.base.schema import SchemaError
from pkb.failure import Failure
from pkb.judge.worlds import gate
from pkb.judge.worlds.prestart import take_nursery
from pkb.platforms import Platform
from pkb.protocol import messages as m
from pkb.protocol.channel import Channel, ChannelClosed, ChannelGarbled
from pkb.record import Verdict

A = TypeVar("A", bound=m.Answer)

_NURSERY_S = 120.0
_CLOSE_S = 15.0
_RETRY_S = 0.02
_PROFILED_CLOSE_S = 120.0
"""A profiler writes its report at the end."""


class Nursery:
    """Starts the nursery process and passes orders to it. Everything dies with this process."""

    def __init__(
        self,
        platform: Platform,
        wrapper: Callable[[list[Path]], list[str]] = lambda folders: [],
        profiled: bool = False,
    ):
        """`wrapper` returns the command that the nursery runs under, where these folders must stay writable."""
        self.platform = platform
        self.profiled = profiled
        self.hidden: set[str] = set()
        """Folders of records, which no candidate may see."""
        self._is_ready = False
        self._worlds, self._orders = itertools.count(), itertools.count()
        self.exits: dict[tuple[int, int], int] = {}
        """(world, rank): exit code, negative for a signal."""
        self.overuse: dict[int, str] = {}
        """By world that was killed for it: the limit that it exceeded."""
        with ExitStack() as undo:
            self.folder = _make_folder(undo)
            self.shared = _make_folder(undo, "/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
            self.process, ours = take_nursery(wrapper([self.folder, self.shared]))
            undo.callback(self.process.kill)
            self.channel = Channel(ours)
            self._send(self._make_settings(), time.monotonic() + _NURSERY_S)
            undo.pop_all()

    def _make_settings(self) -> m.NurserySettings:
        private = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        environment = private | self.platform.make_environment(self.folder)
        # Profilers do not work under MPS, and follow a rank that is a program of its own, not a bare fork.
        without_mps = {k: v for k, v in environment.items() if not (self.profiled and k.startswith("CUDA_MPS_"))}
        return m.NurserySettings(
            environment=without_mps,
            folders=[str(self.folder), str(self.shared)],
            service=[] if self.profiled else list(self.platform.service_command),
            execute=self.profiled,
            preloaded=list(self.platform.preloaded),
            preloaded_for_candidates=list(self.platform.preloaded_for_candidates),
        )

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _NURSERY_S
        while not self._is_ready:
            self._is_ready = gate.is_kind(m.Ready, self._receive(deadline))

    def order(self, order: m.Order, fds: list[int] | None = None) -> m.Answer:
        """Send an order and return its answer, of the class that the order names."""
        number, deadline = next(self._orders), time.monotonic() + _NURSERY_S
        self._send(order, deadline, number, fds or [])
        # An earlier answer may still be there, if Ctrl+C kept us from receiving it.
        while (header := self._receive(deadline)).get(m.ORDER_NUMBER) != number:
            self._note_exit(header)
        return self._parse(order.answer, header, number)

    def list_helpers(self, world: int) -> list[str]:
        """Return the command lines of processes that ranks of a world have started and that still run."""
        return cast(m.ProcessList, self.order(m.ListHelpers(world))).command_lines

    def new_world(self) -> int:
        return next(self._worlds)

    def listen(self) -> None:
        """Receive a report that a rank has ended."""
        self._note_exit(self._receive(time.monotonic() + _NURSERY_S))

    def _send(self, order: m.Order, deadline: float, number: int | None = None, fds: Sequence[int] = ()) -> None:
        try:
            self.channel.send(m.encode(order, number), fds=fds, deadline=deadline)
        except (ChannelClosed, TimeoutError) as error:
            raise self._give_up() from error

    def _receive(self, deadline: float) -> m.Header:
        try:
            return gate.receive_header(self.channel, deadline)
        except (ChannelClosed, ChannelGarbled, TimeoutError) as error:
            raise self._give_up() from error

    def _give_up(self) -> Failure:
        """Return the failure of a nursery that has gone or does not answer; all further orders fail at once."""
        self.channel.hang_up()
        return _describe_nursery_failure()

    def _note_exit(self, header: m.Header) -> None:
        if gate.is_kind(m.RankExited, header):
            ended = self._parse(m.RankExited, header)
            self.exits[ended.world, ended.rank] = ended.code
            if ended.overuse:
                self.overuse[ended.world] = ended.overuse

    def _parse(self, kind: type[A], header: m.Header, number: int | None = None) -> A:
        try:
            answer = gate.parse_answer(kind, header, number)
        except SchemaError as error:
            raise self._give_up() from error
        if isinstance(answer, m.ErrorReport):
            raise self._give_up()
        return answer

    def close(self) -> None:
        self.channel.close()
        # A process that is stopped would not notice that.
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.wait(timeout=_PROFILED_CLOSE_S if self.profiled else _CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for folder in (self.folder, self.shared):
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder with retries: if the nursery was killed, its ranks are still dying, and may be writing."""
    deadline = time.monotonic() + _CLOSE_S
    while not remove_tree(folder) and time.monotonic() < deadline:
        time.sleep(_RETRY_S)


def _make_folder(undo: ExitStack, parent: str | None = None) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pkb-", dir=parent))
    undo.callback(remove_tree, folder)
    return folder


def _describe_nursery_failure() -> Failure:
    return Failure(
        Verdict.ENVIRONMENT,
        "the process that starts ranks has gone or does not answer; run `pkb doctor`, then try again",
        check="nursery",
    )
