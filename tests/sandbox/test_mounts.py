"""Mounts are made read-only also where a container has put its own over them, with options that must be kept."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from pathlib import Path
from pkb.sandbox import linux
from pkb.sandbox.mounts import make_read_only

USER, GROUP = os.getuid(), os.getgid()


def enter():
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{USER} {USER} 1"), ("gid_map", f"{GROUP} {GROUP} 1")):
        Path("/proc/self", name).write_text(text)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)


folder = Path(sys.argv[1])
try:
    enter()
except OSError:
    print("no namespaces")
    sys.exit()
for name, flags in (("plain", 0), ("strict", linux.MS_NOSUID | linux.MS_NODEV), ("top", 0)):
    (folder / name).mkdir()
    linux.mount("tmpfs", str(folder / name), "tmpfs", flags)
    (folder / name / "file").write_text(name)
masked = str(folder / "top" / "file")
linux.mount(str(folder / "plain" / "file"), masked, flags=linux.MS_BIND)
# In namespaces of another user, options of earlier mounts are locked.
enter()
linux.mount(str(folder / "strict" / "file"), masked, flags=linux.MS_BIND)
make_read_only(str(folder / "top"))
print(Path(masked).read_text())
for path in (masked, str(folder / "top" / "new")):
    try:
        open(path, "w")
    except OSError as error:
        print(error.strerror)
"""


def test_a_mount_over_a_mount_keeps_its_own_options(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if done.stdout == "no namespaces\n":
        pytest.skip("this machine forbids user namespaces")
    assert done.stdout == "strict\nRead-only file system\nRead-only file system\n"
