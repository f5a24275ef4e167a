"""Processes that tests start: they can be interrupted, and nothing of them is left."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any


def restore_interrupts() -> None:
    """Let Ctrl+C interrupt this process and those that it starts.

    A shell that starts a command in the background has it ignore SIGINT, and children inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def start_process(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a process group of its own; kill the whole group at the end."""
    restore_interrupts()
    with subprocess.Popen(command, text=True, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run_process(command: Sequence[str], timeout: float = 240, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return what it printed; whatever it leaves running in its group is killed."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_process(command, **pipes, **options) as process:
        output, errors = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
