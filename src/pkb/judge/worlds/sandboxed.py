"""How candidates are locked up: the strongest level that this machine allows, found by trying, and put on record."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from pkb.errors import UsageError
from pkb.failure import Failure
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.world import World
from pkb.platforms import Platform
from pkb.record import Verdict
from pkb.sandbox import linux
from pkb.sandbox import visible_paths as view
from pkb.settings import Limits

_ATTEMPTS = (
    ("namespaces", "namespaces"),
    ("bubblewrap", "landlock"),
    ("bubblewrap", "limits"),
    ("landlock", "landlock"),
    ("limits", "limits"),
    ("off", "off"),
)
"""From strong to weak: the level, and what the nursery does for it. Bubblewrap holds the nursery itself."""
_CLOSED = ("namespaces", "bubblewrap")
"""Levels that close network and files."""
_ALLOWED = {"auto": [level for level, _ in _ATTEMPTS], "require": _CLOSED, "off": ("off",)}
"""Levels by mode."""
_PLACES = ("network", "files", "shared_memory", "processes")
_SWITCHES = {
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "user/max_user_namespaces": ("0", "10000"),
}
"""Settings by which systems forbid user namespaces: what forbids, and what allows them."""


class Sandbox:
    """Starts the worlds of candidates, and knows what is closed to them."""

    def __init__(self, mode: str = "auto", strongest: str = "namespaces"):
        """`strongest` is the first level to be tried."""
        if mode not in _ALLOWED:
            raise UsageError(f"unknown sandbox mode {mode!r}; choose from {', '.join(_ALLOWED)}")
        self.facts: dict[str, Any] = {"level": "untried"}
        """For the record."""
        first = [level for level, _ in _ATTEMPTS].index(strongest if sys.platform == "linux" else "off")
        self._attempts = [a for a in _ATTEMPTS[first:] if a[0] in _ALLOWED[mode]]
        self._refused: dict[str, str] = {}
        self._proved = False
        self._wrapped: Nursery | None = None
        self._waiting: list[World] = []

    def bear(self, nursery: Nursery, size: int, limits: Limits) -> None:
        """Begin with the world that `world` will be asked for."""
        if any(world.size != size for world in self._waiting):
            self.drop()
        for world in self._waiting:
            world.resume()
        if self._attempts and not self._waiting:
            level, inside = self._attempts[0]
            try:
                self._waiting.append(World(self._nursery(level, nursery), size, limits, sandbox=inside))
            except Failure:
                if self._proved:
                    raise
                # `world` will find out, and try the next level.
                return

    def pause(self) -> None:
        """Hold births up until `bear` is asked for more."""
        for world in self._waiting:
            world.pause()

    def drop(self) -> None:
        """What was begun and is not wanted any more."""
        while self._waiting:
            self._waiting.pop().end(kill=True)

    def world(self, nursery: Nursery, size: int, limits: Limits, builds: bool = False) -> World:
        """A started world that waits for its candidate, at the strongest level that can be had."""
        while self._attempts:
            level, inside = self._attempts[0]
            try:
                if self._waiting and self._waiting[0].size == size and not builds:
                    world = self._waiting.pop(0)
                else:
                    world = World(self._nursery(level, nursery), size, limits, sandbox=inside, builds=builds)
                world.start()
            except Failure as failure:
                # What has worked is not given up again: a candidate may have brought this about.
                if self._proved or failure.evidence.get("check") == "nursery" or level == "off":
                    raise
                self._refused[level] = failure.reason
                self._attempts.pop(0)
            else:
                self._prove(level, world)
                return world
        raise Failure(Verdict.ENVIRONMENT, self._unmet(), check="sandbox", refused=self._refused)

    def _prove(self, level: str, world: World) -> None:
        self._proved = True
        around = dict.fromkeys(_PLACES, "closed") if level == "bubblewrap" else {}
        self.facts = {"level": level, **world.sandbox, **around}
        if self._refused:
            self.facts["refused"] = self._refused
        if level == "limits":
            # At the other levels the kernel keeps candidates from reading this process's memory.
            linux.prctl(linux.PR_SET_DUMPABLE, 0)

    def _unmet(self) -> str:
        reasons = "; ".join(f"no {level}: {reason}" for level, reason in self._refused.items())
        why = f" ({reasons})" if reasons else ""
        return f"this machine cannot close network and files, which --sandbox require asks for{why}; {advice()}"

    def _nursery(self, level: str, plain: Nursery) -> Nursery:
        if level != "bubblewrap":
            return plain
        if self._wrapped is None:
            self._wrapped = _wrapped_nursery(plain.platform)
        return self._wrapped

    def close(self) -> None:
        self._waiting.clear()
        if self._wrapped:
            self._wrapped.close()
            self._wrapped = None


def closes(facts: dict[str, Any]) -> bool:
    """Whether a record's facts satisfy --sandbox require."""
    return facts["level"] in _CLOSED


def described(facts: dict[str, Any]) -> str:
    """What the facts of a record say, in a line."""
    closed = [place.replace("_", " ") for place in _PLACES if facts.get(place) == "closed"]
    return f"{facts['level']}: {', '.join(closed) or 'nothing'} closed"


def advice() -> str:
    """How to get a stronger sandbox on this machine."""
    if sys.platform != "linux":
        return "judge on Linux"
    package = "install bubblewrap (Debian, Ubuntu: apt install bubblewrap)"
    for name, (forbids, allows) in _SWITCHES.items():
        setting = Path("/proc/sys", name)
        if setting.exists() and setting.read_text().strip() == forbids:
            return f"run `sudo sysctl {name.replace('/', '.')}={allows}`, or {package}"
    return f"{package}; a container needs --security-opt seccomp=unconfined --security-opt apparmor=unconfined"


def _wrapped_nursery(platform: Platform) -> Nursery:
    """A second nursery, inside bubblewrap, for candidates only."""
    program = shutil.which("bwrap")
    if program is None:
        raise _refusal("bwrap is not installed")
    if platform.service():
        raise _refusal(f"ranks on {platform.name} share a service with the references")
    nursery = Nursery(platform, lambda folders: _command(program, folders, platform))
    try:
        nursery.wait_until_ready()
    except Failure:
        nursery.close()
        raise _refusal("bwrap cannot start here") from None
    return nursery


def _command(program: str, folders: list[Path], platform: Platform) -> list[str]:
    """bwrap and its options: the view of cell.py, built by other hands."""
    options = ["--unshare-all", "--proc", "/proc", "--dev", "/dev"]
    for folder in view.PRIVATE:
        options += ["--tmpfs", folder]
    for path in view.readable():
        kind = "--symlink" if os.path.islink(path) else "--ro-bind"
        options += [kind, os.readlink(path) if os.path.islink(path) else path, path]
    for path in sorted([*map(str, folders), *platform.exposed(folders[0])]):
        options += ["--dev-bind", path, path]
    return [program, *options, "--remount-ro", "/"]


def _refusal(why: str) -> Failure:
    return Failure(Verdict.ENVIRONMENT, why, check="sandbox")
