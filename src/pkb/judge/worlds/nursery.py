"""The judge's handle on the nursery: it starts the process, passes orders, and hears which ranks have ended."""

import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from pkb.base.schema import SchemaError
from pkb.failure import Failure
from pkb.judge.worlds.prestart import take_nursery
from pkb.platforms import Platform
from pkb.protocol import messages as m
from pkb.protocol.channel import Channel, ChannelClosed, ChannelGarbled
from pkb.record import Verdict

_NURSERY_S = 120.0
_CLOSE_S = 15.0
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
        self.folder = Path(tempfile.mkdtemp(prefix="pkb-"))
        self.shared = _make_shared_folder()
        self._is_ready = False
        self._worlds, self._orders = itertools.count(), itertools.count()
        self.exits: dict[tuple[int, int], int] = {}
        """(world, rank): exit code, negative for a signal."""
        self.process, ours = take_nursery(wrapper([self.folder, self.shared]))
        self.channel = Channel(ours)
        self.channel.send(m.encode(self._make_settings()))

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

    def wait_until_ready(self) -> None:
        while not self._is_ready:
            self._is_ready = m.is_kind(m.Ready, self._receive())

    def order(self, order: m.Order, fds: list[int] | None = None) -> m.Answer:
        """Send an order and return its answer, of the class that the order names."""
        number = next(self._orders)
        try:
            self.channel.send({**m.encode(order), "order": number}, fds=fds or [])
        except ChannelClosed as error:
            raise _describe_nursery_failure() from error
        # An earlier answer may still be there, if Ctrl+C kept us from receiving it.
        while (header := self._receive()).get("order") != number:
            self._note_exit(header)
        try:
            return m.decode_answer(order.answer, header)
        except SchemaError as error:
            raise _describe_nursery_failure() from error

    def list_helpers(self, world: int) -> list[str]:
        """Return the command lines of processes that ranks of a world have started and that still run."""
        return cast(m.ProcessList, self.order(m.ListHelpers(world))).command_lines

    def new_world(self) -> int:
        return next(self._worlds)

    def listen(self) -> None:
        """Receive a report that a rank has ended."""
        self._note_exit(self._receive())

    def _receive(self) -> m.Header:
        try:
            return self.channel.receive(time.monotonic() + _NURSERY_S)
        except (ChannelClosed, ChannelGarbled, TimeoutError) as error:
            raise _describe_nursery_failure() from error

    def _note_exit(self, header: m.Header) -> None:
        if m.is_kind(m.RankExited, header):
            ended = m.decode_answer(m.RankExited, header)
            self.exits[ended.world, ended.rank] = ended.code

    def close(self) -> None:
        self.channel.close()
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
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)


def _make_shared_folder() -> Path:
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="pkb-", dir=parent))


def _describe_nursery_failure() -> Failure:
    return Failure(
        Verdict.ENVIRONMENT,
        "the process that starts ranks has gone or does not answer; run `pkb doctor`, then try again",
        check="nursery",
    )
