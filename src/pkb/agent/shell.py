"""An agent's shell: starts the confined process at the strongest level that this machine allows, and sends commands."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pkb.base.removal import remove_tree
from pkb.errors import UsageError
from pkb.sandbox import linux
from pkb.sandbox.levels import list_levels
from pkb.sandbox.scrub import ONE_THREAD, scrub_environment

_WRAPPED = "bubblewrap"
"""A level at which only a nursery can be confined."""


class ShellClosed(Exception):
    """The confined process has ended: somebody closed the shell."""


class Shell:
    """Runs commands in `folder`, without keys, network and GPUs as far as the level goes. Use as a context manager."""

    def __init__(self, folder: Path, sandbox: str = "auto"):
        self.folder = folder
        self._parent_fd: int | None = None
        refused: dict[str, str] = {}
        for level in (level for level in list_levels(sandbox) if level != _WRAPPED):
            answer = self._try_level(level)
            if "ready" in answer:
                self.facts: dict[str, Any] = answer["ready"] | ({"refused": refused} if refused else {})
                break
            refused[level] = answer["refused"]
            self.close()
        else:
            raise UsageError(f"no sandbox for the agent ({refused}); use --sandbox auto, or see `pkb doctor`")
        if level in ("limits", "off"):
            # Nothing else keeps commands from reading this process's environment.
            linux.prctl(linux.PR_SET_DUMPABLE, 0)

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, command: str, seconds: float) -> dict[str, Any]:
        """Return a command's exit code, None after a timeout, and its output. Raises ShellClosed once it is closed."""
        try:
            print(json.dumps({"command": command, "seconds": seconds}), file=self._process.stdin, flush=True)
        except (OSError, ValueError):
            raise ShellClosed from None
        return self._receive()

    def close(self) -> None:
        """End the shell and everything that its commands have started. Any thread may call this."""
        if self._parent_fd is not None:
            os.close(self._parent_fd)
            self._parent_fd = None
        self._process.kill()
        self._process.wait()
        remove_tree(self._root)

    def _try_level(self, level: str) -> dict[str, Any]:
        self._start(level)
        try:
            return self._receive()
        except ShellClosed:
            return {"refused": "its process broke down"}

    def _start(self, level: str) -> None:
        theirs, self._parent_fd = os.pipe()
        self._root = tempfile.mkdtemp(prefix="pkb-root-")
        settings = {"level": level, "folder": str(self.folder), "root": self._root, "parent_fd": theirs}
        self._process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-P", "-m", "pkb.agent.confined_shell", json.dumps(settings)],
            env=self._make_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            pass_fds=[theirs],
            start_new_session=True,
        )
        os.close(theirs)

    def _make_environment(self) -> dict[str, str]:
        inherited = scrub_environment()
        path = f"{Path(sys.executable).parent}:{inherited.get('PATH', os.defpath)}"
        package = str(Path(__file__).parents[2])
        own = {"PATH": path, "HOME": str(self.folder), "TMPDIR": str(self.folder), "PYTHONPATH": package}
        # Only a process of one thread can enter namespaces, and commands share the cores with the judge.
        return {**inherited, **own, **ONE_THREAD}

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout
        try:
            return json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise ShellClosed from None
