"""The command that some platforms need beside their ranks."""

import contextlib
import os
import signal
import subprocess
import time

from pkb.sandbox.processes import children_of

_START_S = 0.3


class Service:
    """A command that runs beside the ranks, such as the control daemon of MPS."""

    def __init__(self, command: list[str]):
        self.command = command
        self.process: subprocess.Popen[bytes] | None = None
        self.spoilt = False
        """A client was killed in the middle of its work: start afresh before the next one."""
        self._up_at = 0.0
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
            self._up_at = time.monotonic() + _START_S

    def wait_until_up(self) -> None:
        """Before anyone needs it."""
        time.sleep(max(0.0, self._up_at - time.monotonic()))

    def stop(self) -> None:
        if self.process:
            for child in children_of(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self.process.kill()
            # Not wait(): the nursery reaps all its children in one place.
            self.process = None
