"""The process that runs an agent's commands: it confines itself first, as candidates are, and then serves its stdin.

Run as `python -m pkb.agent.confined_shell SETTINGS`. A command is one line of JSON, and so is its result.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

from pkb.sandbox.confine import Domain, confine, count_allowed_processes
from pkb.sandbox.quota import choose_quota
from pkb.sandbox.visible_paths import Ours

_RANKS = 4
"""The process limit is that of a world with this many ranks."""
_MAX_OUTPUT = 16 << 10
"""Bytes of a command's output that are returned, from its beginning and from its end."""


def main(settings: str) -> None:
    order = json.loads(settings)
    facts = {"level": order["level"]}
    try:
        if order["level"] != "off":
            domain = Domain(
                choose_quota(_RANKS),
                count_allowed_processes(_RANKS),
                writable=[order["folder"]],
                ours=Ours.NOTHING,
                allows_shared_memory=True,
            )
            facts |= confine(order["level"], order["root"], domain, order["parent_fd"]).facts
    except OSError as error:
        _send({"refused": f"{error.strerror or error} {error.filename or ''}".strip()})
    else:
        _send({"ready": facts})
        _serve(order["folder"])


def _serve(folder: str) -> None:
    for line in sys.stdin:
        order = json.loads(line)
        _send(run(order["command"], folder, order["seconds"]))


def run(command: str, folder: str, seconds: float) -> dict[str, Any]:
    """Run a command; return its output and its exit code, which is None where the command was killed at the timeout."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            # Where the package is not hidden, PYTHONPATH would lead to the judge's own code.
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return {"code": code, "output": _read_output(output.fileno())}


def _read_output(file: int) -> str:
    """Return a file's text without its middle where it is long."""
    size = os.fstat(file).st_size
    if size <= 2 * _MAX_OUTPUT:
        return os.pread(file, size, 0).decode(errors="replace")
    begin, end = os.pread(file, _MAX_OUTPUT, 0), os.pread(file, _MAX_OUTPUT, size - _MAX_OUTPUT)
    left_out = size - 2 * _MAX_OUTPUT
    return f"{begin.decode(errors='replace')}\n[{left_out} bytes left out]\n{end.decode(errors='replace')}"


def _send(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
