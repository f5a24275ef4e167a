"""The judge's handle on the nursery: it starts the process, passes orders, and hears which ranks have ended."""

import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pkb.failure import Failure
from pkb.judge.worlds.prestart import take_nursery
from pkb.platforms import Platform
from pkb.protocol.channel import Channel, ChannelClosed, ChannelGarbled, Message
from pkb.record import Verdict

_NURSERY_S = 120.0
_CLOSE_S = 15.0
_PROFILED_CLOSE_S = 120.0
"""A profiler writes its report at the end."""


class Nursery:
    """Starts the nursery and passes orders to it. Everything dies with this process."""

    def __init__(
        self,
        platform: Platform,
        wrapper: Callable[[list[Path]], list[str]] = lambda folders: [],
        profiled: bool = False,
    ):
        """`wrapper` gives the command that the nursery runs under, where these folders must stay writable."""
        self.platform = platform
        self.profiled = profiled
        self.folder = Path(tempfile.mkdtemp(prefix="pkb-"))
        self.shared = _shared_memory_folder()
        self._is_ready = False
        self._worlds, self._orders = itertools.count(), itertools.count()
        self.exits: dict[tuple[int, int], int] = {}
        """(world, rank): exit code, negative for a signal."""
        self.process, ours = take_nursery(wrapper([self.folder, self.shared]))
        self.channel = Channel(ours)
        self.channel.send(self._settings())

    def _settings(self) -> Message:
        private = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        environment = private | self.platform.nursery_environment(self.folder)
        # Profilers do not like the service, MPS, and follow a rank that is a program of its own, not a bare fork.
        unserved = {k: v for k, v in environment.items() if not (self.profiled and k.startswith("CUDA_MPS_"))}
        return {
            "environment": unserved,
            "folders": [str(self.folder), str(self.shared)],
            "service": [] if self.profiled else self.platform.service(),
            "execute": self.profiled,
            "preloaded": self.platform.preloaded,
            "for_candidates": self.platform.preloaded_for_candidates,
        }

    def wait_until_ready(self) -> None:
        while not self._is_ready:
            self._is_ready = bool(self._receive().get("ready"))

    def order(self, message: Message, fds: list[int] | None = None) -> Message:
        number = next(self._orders)
        try:
            self.channel.send({"order": number, **message}, fds=fds or [])
        except ChannelClosed as error:
            raise _nursery_failure() from error
        # There may be an answer before it that Ctrl+C kept us from taking.
        while (answer := self._receive()).get("order") != number:
            self._note(answer)
        return answer

    def new_world(self) -> int:
        return next(self._worlds)

    def listen(self) -> None:
        """Take in a report that a rank has ended."""
        self._note(self._receive())

    def _receive(self) -> Message:
        try:
            return self.channel.receive(time.monotonic() + _NURSERY_S)
        except (ChannelClosed, ChannelGarbled, TimeoutError) as error:
            raise _nursery_failure() from error

    def _note(self, message: Message) -> None:
        if message.get("event") == "exit":
            self.exits[message["world"], message["rank"]] = message["code"]

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
    """Patiently: if the nursery did not end by itself, its ranks are still dying, and may be writing."""
    deadline = time.monotonic() + _CLOSE_S
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)


def _shared_memory_folder() -> Path:
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="pkb-", dir=parent))


def _nursery_failure() -> Failure:
    return Failure(
        Verdict.ENVIRONMENT,
        "the process that starts ranks has gone or does not answer; run `pkb doctor`, then try again",
        check="nursery",
    )
