"""Open worlds for candidates at the strongest sandbox level that this machine allows, found by trying."""

import os
import shutil
import sys
from pathlib import Path

from pkb.failure import Failure
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.world import World
from pkb.platforms import Platform
from pkb.record import SandboxFacts, Verdict
from pkb.sandbox import linux
from pkb.sandbox import visible_paths as view
from pkb.sandbox.levels import CLOSED_LEVELS, list_levels
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
PLACES = ("network", "keyring", "files", "shared_memory", "memory", "writing", "processes")
"""What the facts of a sandbox speak of: what is closed to a candidate, or limited."""
_AROUND = dict.fromkeys(("network", "files", "shared_memory", "processes"), "closed by bubblewrap")
_SWITCHES = {
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "user/max_user_namespaces": ("0", "10000"),
}
"""Settings by which systems forbid user namespaces: what forbids, and what allows them."""
_BWRAP_PROFILE = Path("/etc/apparmor.d/bwrap-userns-restrict")


class Sandbox:
    """Opens the worlds of candidates, and knows what is closed to them."""

    def __init__(self, mode: str = "auto", strongest: str = "namespaces"):
        """`strongest` is the first level to be tried."""
        allowed = list_levels(mode)
        self.facts = SandboxFacts()
        """For the record."""
        first = [level for level, _ in _ATTEMPTS].index(strongest if sys.platform == "linux" else "off")
        self._attempts = [a for a in _ATTEMPTS[first:] if a[0] in allowed]
        self._refused: dict[str, str] = {}
        self._proved = False
        self._wrapped: Nursery | None = None

    @property
    def is_proved(self) -> bool:
        """Whether a world has started at the level that is used."""
        return self._proved

    def fork_world(self, nursery: Nursery, size: int, limits: Limits) -> list[World]:
        """Fork the world that `open_world` will be asked for, without waiting; an empty list where no level is left."""
        if not self._attempts:
            return []
        level, inside = self._attempts[0]
        return [World(self._find_nursery(level, nursery), size, limits, sandbox=inside)]

    def open_world(
        self, nursery: Nursery, size: int, limits: Limits, waiting: World | None = None, builds: bool = False
    ) -> World:
        """Return a started world for a candidate at the strongest level that works; `waiting` was forked before."""
        while self._attempts:
            level, inside = self._attempts[0]
            try:
                world, waiting = waiting, None
                if world is None:
                    own = self._find_nursery(level, nursery)
                    world = World(own, size, limits, sandbox=inside, builds=builds)
                world.start()
            except Failure as failure:
                # A level that has worked is not given up again: a candidate may have caused the failure.
                if self._proved or failure.evidence.check == "nursery" or level == "off":
                    raise
                self._refused[level] = failure.reason
                self._attempts.pop(0)
            else:
                self._prove(level, world)
                return world
        raise Failure(Verdict.ENVIRONMENT, self._describe_refusals(), check="sandbox", refused=self._refused)

    def _prove(self, level: str, world: World) -> None:
        self._proved = True
        around = _AROUND if level == "bubblewrap" else {}
        self.facts = SandboxFacts(level, **(world.sandbox | around), refused=dict(self._refused))
        if level == "limits":
            # At the other levels the kernel keeps candidates from reading this process's memory.
            linux.prctl(linux.PR_SET_DUMPABLE, 0)

    def _describe_refusals(self) -> str:
        reasons = "; ".join(f"no {level}: {reason}" for level, reason in self._refused.items())
        why = f" ({reasons})" if reasons else ""
        return f"this machine cannot close network and files, which --sandbox require asks for{why}; {advise()}"

    def _find_nursery(self, level: str, plain: Nursery) -> Nursery:
        if level != "bubblewrap":
            return plain
        if self._wrapped and self._wrapped.has_ended:
            self.close()
        if self._wrapped is None:
            self._wrapped = _start_wrapped_nursery(plain.platform)
            self._wrapped.hidden = plain.hidden
        return self._wrapped

    def interrupt(self) -> None:
        """Make what is under way in another thread fail, where candidates have a nursery of their own."""
        if self._wrapped:
            self._wrapped.channel.hang_up()

    def close(self) -> None:
        if self._wrapped:
            self._wrapped.close()
            self._wrapped = None

    def forget_parent(self) -> None:
        """Let go, in a forked child, of a nursery that is the parent's."""
        if self._wrapped:
            self._wrapped.channel.close()
            self._wrapped = None


def is_closed(facts: SandboxFacts) -> bool:
    """Whether the facts of a sandbox satisfy --sandbox require."""
    return facts.level in CLOSED_LEVELS


def is_place_closed(facts: SandboxFacts, place: str) -> bool:
    return (getattr(facts, place) or "").startswith("closed")


def advise() -> str:
    """Return how to get a stronger sandbox on this machine."""
    if sys.platform != "linux":
        return "judge on Linux"
    package = "install bubblewrap (Debian, Ubuntu: apt install bubblewrap)"
    for name, (forbids, allows) in _SWITCHES.items():
        setting = Path("/proc/sys", name)
        if setting.exists() and setting.read_text().strip() == forbids:
            # Where AppArmor forbids user namespaces, it forbids them to bubblewrap too, unless a profile allows them.
            may_help = _BWRAP_PROFILE.exists() or "apparmor" not in name
            return f"run `sudo sysctl {name.replace('/', '.')}={allows}`" + (f", or {package}" if may_help else "")
    return f"{package}; a container needs --security-opt seccomp=unconfined --security-opt apparmor=unconfined"


def _start_wrapped_nursery(platform: Platform) -> Nursery:
    """Start a second nursery, inside bubblewrap, for candidates only."""
    program = shutil.which("bwrap")
    if program is None:
        raise _refuse("bwrap is not installed")
    if platform.service_command:
        raise _refuse(f"ranks on {platform.name} share a service with the references")
    nursery = Nursery(platform, lambda folders: _make_command(program, folders, platform))
    try:
        nursery.wait_until_ready()
    except Failure:
        nursery.close()
        raise _refuse("bwrap cannot start here") from None
    return nursery


def _make_command(program: str, folders: list[Path], platform: Platform) -> list[str]:
    """Return the bwrap command whose view of the file system is that of sandbox/confine.py."""
    options = ["--unshare-all", "--proc", "/proc", "--dev", "/dev"]
    for folder in view.PRIVATE_FOLDERS:
        options += ["--tmpfs", folder]
    # Its own modules too: the nursery starts inside. Ranks see less of them where Landlock closes files inside.
    for path, is_shown in view.list_rules(view.Ours.PROGRAM, hidden=list(map(str, folders))):
        options += _bind_read_only(path) if is_shown else ["--tmpfs", path]
    for path in sorted([*map(str, folders), *platform.list_writable_paths(folders[0])]):
        options += ["--dev-bind", path, path]
    return [program, *options, "--remount-ro", "/"]


def _bind_read_only(path: str) -> list[str]:
    return ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]


def _refuse(why: str) -> Failure:
    return Failure(Verdict.ENVIRONMENT, why, check="sandbox")
