"""An agent's shell: the strongest jail that this machine allows, and a way to send it commands."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pkb.errors import UsageError
from pkb.sandbox import linux
from pkb.sandbox.scrub import ONE_THREAD, scrub_environment

_LEVELS = {
    "auto": ("namespaces", "landlock", "limits", "off"),
    "require": ("namespaces",),
    "off": ("off",),
}


class Gone(Exception):
    """The jail has ended: somebody closed it."""


class Shell:
    """Use as a context manager. Its commands run in `folder`, without keys, network and GPUs, as far as it goes."""

    def __init__(self, folder: Path, sandbox: str = "auto"):
        if sandbox not in _LEVELS:
            raise UsageError(f"unknown sandbox mode {sandbox!r}; choose from {', '.join(_LEVELS)}")
        self.folder = folder
        self._lifeline: int | None = None
        refused: dict[str, str] = {}
        for level in _LEVELS[sandbox]:
            answer = self._started(level)
            if "ready" in answer:
                self.facts: dict[str, Any] = answer["ready"] | ({"refused": refused} if refused else {})
                break
            refused[level] = answer["refused"]
            self.close()
        else:
            raise UsageError(f"no sandbox for the agent ({refused}); use --sandbox auto, or see `pkb doctor`")
        if level in ("limits", "off"):
            # Nothing else keeps its commands from reading this process's environment.
            linux.prctl(linux.PR_SET_DUMPABLE, 0)

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, command: str, seconds: float) -> dict[str, Any]:
        """The exit code, None after a timeout, and the output. Raises Gone when the shell is closed meanwhile."""
        try:
            print(json.dumps({"command": command, "seconds": seconds}), file=self._process.stdin, flush=True)
        except (OSError, ValueError):
            raise Gone from None
        return self._hear()

    def close(self) -> None:
        """From any thread. All that its commands have started ends with it."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._root, ignore_errors=True)

    def _started(self, level: str) -> dict[str, Any]:
        self._start(level)
        try:
            return self._hear()
        except Gone:
            return {"refused": "its process broke down"}

    def _start(self, level: str) -> None:
        theirs, self._lifeline = os.pipe()
        self._root = tempfile.mkdtemp(prefix="pkb-root-")
        settings = {"level": level, "folder": str(self.folder), "root": self._root, "lifeline": theirs}
        self._process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-P", "-m", "pkb.agent.jail", json.dumps(settings)],
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            pass_fds=[theirs],
            start_new_session=True,
        )
        os.close(theirs)

    def _environment(self) -> dict[str, str]:
        kept = scrub_environment()
        path = f"{Path(sys.executable).parent}:{kept.get('PATH', os.defpath)}"
        package = str(Path(__file__).parents[2])
        own = {"PATH": path, "HOME": str(self.folder), "TMPDIR": str(self.folder), "PYTHONPATH": package}
        # Only a process of one thread can enter namespaces.
        return {**kept, **own, **ONE_THREAD}

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout
        try:
            return json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise Gone from None
