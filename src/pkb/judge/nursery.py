"""The judge's handle on the nursery: it starts the process, passes orders, and hears which ranks have ended."""

import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pkb.judge.channel import Channel, ChannelClosed, ChannelGarbled, Message
from pkb.judge.failure import Failure
from pkb.platforms import Platform
from pkb.record import Verdict

_NURSERY_S = 120.0
# Everything else (keys, tokens, settings of the person's shell) stays outside.
_INHERITED = re.compile(r"PATH|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|CC|CXX|CUDA_\w+|NVIDIA_\w+|NCCL_\w+")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL")


class Nursery:
    """Starts the nursery and passes orders to it. Everything dies with this process."""

    def __init__(self, platform: Platform, wrapper: Callable[[list[Path]], list[str]] = lambda folders: []):
        """`wrapper` gives the command that the nursery runs under, where these folders must stay writable."""
        self.platform = platform
        self._wrapper = wrapper
        self.folder = Path(tempfile.mkdtemp(prefix="pkb-"))
        self.shared = _shared_memory_folder()
        self._worlds = itertools.count()
        self.exits: dict[tuple[int, int], int] = {}
        """(world, rank): exit code, negative for a signal."""
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        self.process = self._start(theirs)
        theirs.close()

    def _start(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        kept = {key: value for key, value in os.environ.items() if _is_passed_on(key)}
        package_root = str(Path(__file__).parents[2])
        environment = kept | {"PYTHONPATH": package_root, "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        folders = [str(self.folder), str(self.shared)]
        settings = json.dumps({"folders": folders, "service": self.platform.service()})
        environment |= self.platform.nursery_environment(self.folder)
        program = ["-P", "-m", "pkb.judge.nursery_main", str(theirs.fileno()), settings]
        return subprocess.Popen(
            [*self._wrapper([self.folder, self.shared]), sys.executable, *program],
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # Its own session: Ctrl+C reaches the judge alone, which then ends the ranks in order.
            start_new_session=True,
        )

    def wait_until_ready(self) -> None:
        self._answer("ready")

    def order(self, message: Message, fds: list[int] | None = None) -> Message:
        try:
            self.channel.send(message, fds=fds or [])
        except ChannelClosed as error:
            raise _nursery_failure() from error
        return self._answer("reply")

    def new_world(self) -> int:
        return next(self._worlds)

    def listen(self) -> None:
        """Take in a report that a rank has ended."""
        self._note(self._receive())

    def _answer(self, key: str) -> Message:
        while key not in (message := self._receive()):
            self._note(message)
        return message

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
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for folder in (self.folder, self.shared):
            shutil.rmtree(folder, ignore_errors=True)


def _is_passed_on(variable: str) -> bool:
    return bool(_INHERITED.fullmatch(variable)) and not _SECRET.search(variable)


def _shared_memory_folder() -> Path:
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="pkb-", dir=parent))


def _nursery_failure() -> Failure:
    return Failure(
        Verdict.ENVIRONMENT,
        "the process that starts ranks has gone or does not answer; run `pkb doctor`, then try again",
        check="nursery",
    )
