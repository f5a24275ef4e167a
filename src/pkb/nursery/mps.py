"""The daemon that some platforms need while ranks run: MPS, which lets several ranks share one GPU."""

import contextlib
import os
import signal
import subprocess
import time

from pkb.sandbox.processes import list_children

_START_S = 0.3


class Service:
    """A command that runs as long as the nursery, such as the control daemon of MPS; an empty command runs nothing."""

    def __init__(self, command: list[str]):
        self.command = command
        self.process: subprocess.Popen[bytes] | None = None
        self.needs_restart = False
        """Whether a client was killed while it used the service: restart before the next client."""
        self._up_at = 0.0
        self.restart()

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def restart(self) -> None:
        self.stop()
        self.needs_restart = False
        if self.command:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            self._up_at = time.monotonic() + _START_S

    def wait_until_up(self) -> None:
        """Sleep until the service has had time to start."""
        time.sleep(max(0.0, self._up_at - time.monotonic()))

    def stop(self) -> None:
        if self.process:
            for child in list_children(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self.process.kill()
            # Not wait(): the nursery reaps all its children in one place.
            self.process = None
