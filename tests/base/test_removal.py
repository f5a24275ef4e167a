"""Folders as a hostile candidate leaves them are removed, whatever is in them, and nothing outside is touched."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pkb.base.removal import remove_tree

MOUNTS = """
import os, sys
from pathlib import Path
from pkb.base.removal import remove_tree
from pkb.sandbox import linux

try:
    user, group = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {{user}} 1"), ("gid_map", f"0 {{group}} 1")):
        Path(f"/proc/self/{{name}}").write_text(text)
    linux.mount("tmpfs", "{top}/mounted", "tmpfs")
except OSError as error:
    print("refused", error)
    sys.exit()
Path("{top}/mounted/kept").touch()
print(remove_tree("{top}"), os.listdir("{top}"), os.listdir("{top}/mounted"))
"""
AS_NOBODY = """
import os, sys
from pkb.base.removal import remove_tree

os.chown("{top}", 65534, 65534)
os.setgid(65534)
os.setuid(65534)
os.makedirs("{top}/a/b/c")
open("{top}/a/b/file", "w").close()
for folder in ("{top}/a/b/c", "{top}/a/b", "{top}/a", "{top}"):
    os.chmod(folder, 0)
remove_tree("{top}")
os.chmod("{top}", 0o700)
print(os.listdir("{top}"))
"""


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "top"
    folder.mkdir()
    return folder


def nest_folders(top: Path, depth: int) -> None:
    """Make folders in folders, deeper than any path could name."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_CREAT, dir_fd=here))
    os.close(here)


@pytest.mark.parametrize("depth", [1, 3_000, 20_000])
def test_depth_does_not_matter(top: Path, depth: int) -> None:
    nest_folders(top, depth)
    assert remove_tree(top)
    assert not top.exists()


def test_no_descriptor_is_left_open(top: Path) -> None:
    nest_folders(top, 100)
    before = len(os.listdir("/dev/fd"))
    assert remove_tree(top)
    assert len(os.listdir("/dev/fd")) == before


def test_wide_folders_are_removed(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkb.base.removal._MOST_NAMES", 7)
    for number in range(100):
        (top / f"{number}" / "below").mkdir(parents=True)
        (top / f"{number}.txt").touch()
    assert remove_tree(top)


def test_links_are_removed_and_never_followed(top: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (tmp_path / "file").write_text("kept")
    (top / "to_folder").symlink_to(outside)
    (top / "to_file").symlink_to(tmp_path / "file")
    (top / "to_above").symlink_to("..")
    (top / "to_itself").symlink_to("to_itself")
    (top / "to_nowhere").symlink_to("/nowhere")
    os.link(tmp_path / "file", top / "hard")
    assert remove_tree(top)
    assert (tmp_path / "file").read_text() == "kept"
    assert outside.stat().st_mode & 0o777 == 0o500


def test_a_link_in_place_of_the_folder_is_removed_itself(top: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(top)
    assert remove_tree(link)
    assert top.is_dir()
    assert not link.is_symlink()


def test_odd_names_and_kinds_of_files_are_removed(top: Path) -> None:
    for name in (b"\xff\xfe", b"-rf", b"new\nline", b"\xed\xa0\x80", b" ", b"*", b"n" * 255):
        os.mkdir(os.fsencode(top) + b"/" + name)
        os.close(os.open(os.fsencode(top) + b"/" + name + b"/" + name, os.O_CREAT))
    os.mkfifo(top / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(top / "socket"))
    assert remove_tree(top)


def test_what_is_not_there_needs_no_removal(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "nothing")
    (tmp_path / "file").touch()
    assert remove_tree(tmp_path / "file")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without files")
def test_folders_without_rights_are_removed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.mkdir(f"{folder}/top")
        assert run_program(AS_NOBODY.format(top=f"{folder}/top")) == "[]\n"


def test_files_that_appear_meanwhile_are_removed_too(top: Path) -> None:
    with write_files(top):
        deadline = time.monotonic() + 20
        time.sleep(0.1)
        remove_tree(top, seconds=1.0)
    assert time.monotonic() < deadline
    assert remove_tree(top)


@contextlib.contextmanager
def write_files(top: Path) -> Iterator[None]:
    stopped = threading.Event()

    def write() -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            with contextlib.suppress(OSError):
                os.makedirs(top / str(number % 50) / "below", exist_ok=True)
                (top / str(number % 50) / str(number)).touch()

    thread = threading.Thread(target=write)
    thread.start()
    yield
    stopped.set()
    thread.join()


def test_another_file_system_is_not_entered(top: Path) -> None:
    (top / "mounted").mkdir()
    (top / "folder" / "below").mkdir(parents=True)
    found = run_program(MOUNTS.format(top=top))
    if found.startswith("refused"):
        pytest.skip("this user may not mount anything")
    assert found == "False ['mounted'] ['kept']\n"


def run_program(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
