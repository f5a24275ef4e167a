"""The process that runs an agent's commands: it locks itself up first, as candidates are, then serves its stdin.

Run as `python -m pkb.agent.jail SETTINGS`. A command is one line of JSON, and so is its outcome.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pkb
from pkb.sandbox.confine import confine

_PROCESSES = 4
"""As many as so many ranks may have."""
_KEPT = 16 << 10
"""Bytes of what a command prints, from its beginning and from its end."""


def main(settings: str) -> None:
    order = json.loads(settings)
    facts = {"level": order["level"]}
    try:
        if order["level"] != "off":
            package = str(Path(str(pkb.__file__)).parent)
            facts |= confine(
                order["level"], order["root"], [order["folder"]], _PROCESSES, order["lifeline"], [package]
            ).facts
    except OSError as error:
        _tell({"refused": f"{error.strerror or error} {error.filename or ''}".strip()})
    else:
        _tell({"ready": facts})
        _serve(order["folder"])


def _serve(folder: str) -> None:
    for line in sys.stdin:
        order = json.loads(line)
        _tell(run(order["command"], folder, order["seconds"]))


def run(command: str, folder: str, seconds: float) -> dict[str, Any]:
    """What it printed, and its exit code; None where it was ended for taking too long."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            # Where that is not hidden, it would lead to the judge's own code.
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
        return {"code": code, "output": _shortened(output.fileno())}


def _shortened(file: int) -> str:
    size = os.fstat(file).st_size
    if size <= 2 * _KEPT:
        return os.pread(file, size, 0).decode(errors="replace")
    begin, end = os.pread(file, _KEPT, 0), os.pread(file, _KEPT, size - _KEPT)
    return f"{begin.decode(errors='replace')}\n[{size - 2 * _KEPT} bytes left out]\n{end.decode(errors='replace')}"


def _tell(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
