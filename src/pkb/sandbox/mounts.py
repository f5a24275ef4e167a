"""The file system of a confined process tree: a new root that shows chosen paths at their usual places only."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from pkb.sandbox.linux import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    unmount,
)
from pkb.sandbox.quota import Quota
from pkb.sandbox.visible_paths import PathRule

_LOCKED = {"nosuid": MS_NOSUID, "nodev": MS_NODEV, "noexec": MS_NOEXEC}
"""Mount options that a remount must keep."""
_NAMES = {
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n::ffff:127.0.0.1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Files with other content inside, so that no process waits for a name server that it cannot reach."""
_LINKS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}


def build_root(
    root: str,
    rules: Sequence[PathRule],
    private: Sequence[str],
    writable: Sequence[str],
    quota: Quota,
) -> None:
    """Mount the file system below `root`, in this process's own mount namespace.

    What the rules show is mounted read-only, what they hide appears empty, `private` folders are new and share one
    quota. A private folder may lie in one that is shown.
    """
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m")
    outer = [path for path in private if not _lies_in(path, [rule.path for rule in rules])]
    inner = [path for path in private if path not in outer]
    with _mount_storage(root, quota) as storage:
        _bind_private(outer, root, storage)
        for path, is_shown in rules:
            if path in _NAMES:
                _write(root + path, _NAMES[path])
            elif is_shown:
                _show(path, root)
            else:
                _hide(path, root)
        _bind_private(inner, root, storage)
    for path in writable:
        _show(path, root)
    for name, target in _LINKS.items():
        os.symlink(f"/proc/self/{target}", f"{root}/dev/{name}")
    os.mkdir(f"{root}/proc")
    make_read_only(root, {root + path for path in private}, tuple(root + path for path in writable))


def _lies_in(path: str, folders: Sequence[str]) -> bool:
    return f"{path}/".startswith(tuple(f"{folder}/" for folder in folders))


@contextmanager
def _mount_storage(root: str, quota: Quota) -> Iterator[str]:
    """Mount the file system that holds all private folders; afterwards only these folders lead to it."""
    storage = f"{root}/storage"
    os.mkdir(storage)
    options = f"mode=755,size={quota.file_bytes},nr_inodes={quota.most_files}"
    mount("tmpfs", storage, "tmpfs", MS_NOSUID | MS_NODEV, options)
    yield storage
    unmount(storage)
    os.rmdir(storage)


def _bind_private(folders: Sequence[str], root: str, storage: str) -> None:
    for folder in folders:
        source = f"{storage}/{folder.replace('/', '-')}"
        os.mkdir(source)
        os.chmod(source, 0o1777)
        os.makedirs(root + folder, exist_ok=True)
        mount(source, root + folder, flags=MS_BIND)


def mount_proc(root: str) -> bool:
    """Mount a /proc that shows only this PID namespace, or the old /proc where a container's masks forbid that.

    Return whether the processes outside are hidden.
    """
    try:
        mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError:
        mount("/proc", f"{root}/proc", flags=MS_BIND | MS_REC)
        return False
    return True


def make_proc_read_only(proc: str, gpu: bool) -> None:
    """Make /proc read-only; with a GPU only /proc/sys, because CUDA writes to its own process's entry.

    The names of the user's keys are hidden.
    """
    for name in filter(os.path.exists, (f"{proc}/keys", f"{proc}/key-users")):
        mount(os.devnull, name, flags=MS_BIND)
    if gpu:
        mount(f"{proc}/sys", f"{proc}/sys", flags=MS_BIND | MS_REC)
    make_read_only(f"{proc}/sys" if gpu else proc)


def _show(path: str, root: str) -> None:
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.close(os.open(target, os.O_CREAT))
    mount(path, target, flags=MS_BIND | MS_REC)


def _hide(path: str, root: str) -> None:
    """Cover what is shown at a path: a folder by an empty one, a file by the null device."""
    if os.path.isdir(path):
        mount("tmpfs", root + path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    else:
        mount(os.devnull, root + path, flags=MS_BIND)


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def make_read_only(top: str, except_at: Collection[str] = (), except_below: tuple[str, ...] = ()) -> None:
    """Remount all mounts at and below `top` read-only, except those at `except_at`, and at or below `except_below`."""
    # Of several mounts at one path, as under a container's masks, only the last can be reached and remounted.
    for target, options in dict(_list_mounts(top)).items():
        if target not in except_at and not f"{target}/".startswith(tuple(f"{folder}/" for folder in except_below)):
            locked = sum(_LOCKED.get(option, 0) for option in options)
            mount("none", target, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | locked)


def _list_mounts(top: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the mount points at and below a folder, with their options."""
    with open("/proc/self/mountinfo", errors="surrogateescape") as file:
        rows = [line.split() for line in file]
    for row in rows:
        target = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), row[4])
        if target == top or target.startswith(f"{top}/"):
            yield target, row[5].split(",")
