"""Note work that is done elsewhere: by other programs, through sockets, in compiled modules of packages."""

import _posixsubprocess
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from pkb.rank.observers import Note, hide, wrap

_COMPILERS = re.compile(
    r"(cc|c\+\+|gcc|g\+\+|clang|clang\+\+)(-[\d.]+)?|[\w-]+-linux-gnu-(gcc|g\+\+)(-[\d.]+)?"
    r"|nvcc|ptxas(-blackwell)?|cuobjdump|nvdisasm|nvlink|fatbinary|ninja|ld|ldconfig|file|uname|lscpu|nvidia-smi"
)
"""Programs that Triton and CUDA's libraries run to compile a kernel, or to find the machine's parts."""
_OWN_CODE = re.compile(r"-wrapper|-fplugin|-?-specs|-B|-?-ccbin|--?compiler-bindir|@")
"""Beginnings of arguments by which a compiler runs a program or a plugin of somebody else's."""
_PACKAGES = (
    *(
        "torch",
        "triton",
        "cuda",
        "cutlass",
        "nvidia_cutlass_dsl",
        "functorch",
        "optree",
        "yaml",
        "psutil",
        "markupsafe",
    ),
    *("numpy.random", "numpy._core._multiarray_umath", "numpy.core._multiarray_umath"),
)
"""Packages and modules whose compiled parts a kernel may load: torch's and Triton's, and some without arithmetic."""

_BUILDER = "triton.runtime.build"


class OutsideWork:
    """Notes, from now on and for as long as the process lives, what others are asked to do."""

    def __init__(self, note: Note, may_load: Callable[[str], bool], writable: tuple[str, ...]):
        """`may_load` tells of a file whether the judge compiled it, or the system has it; `writable` are folders."""
        self.note = note
        self._writable = writable
        self._may_load = may_load
        self._standard = tuple(
            f"{os.path.realpath(sysconfig.get_path(name))}/lib-dynload/" for name in ("stdlib", "platstdlib")
        )
        start = hide(wrap(_posixsubprocess.fork_exec, lambda args, programs, *_, **__: self._look(programs, args)))
        for module, name in ((_posixsubprocess, "fork_exec"), (subprocess, "_fork_exec")):
            if hasattr(module, name):
                setattr(module, name, start)
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event in ("os.posix_spawn", "os.exec", "os.spawn"):
            # os.spawn has a mode first.
            program, words = (args[0], args[1]) if event != "os.spawn" else (args[1], args[2])
            self._look([program], words)
        elif event in ("os.system", "os.startfile"):
            self.note(f"library.{event}")
        elif event == "socket.__new__":
            self.note("socket.socket")
        elif event == "import" and args[1]:
            self._note_module(str(args[0]), os.path.realpath(os.fsdecode(args[1])))

    def _look(self, programs: Sequence[Any], arguments: Sequence[Any]) -> None:
        """Note a program that is started, unless it is a compiler that runs no code but its own."""
        paths = [os.fsdecode(program) for program in programs or ()]
        words = [os.fsdecode(word) for word in list(arguments or ())[1:] if isinstance(word, str | bytes | os.PathLike)]
        name = os.path.basename(paths[0]) if paths else ""
        are_known = paths and all(_COMPILERS.fullmatch(os.path.basename(path)) for path in paths)
        is_own = any(os.path.realpath(path).startswith(self._writable) for path in paths) or any(
            map(_OWN_CODE.match, words)
        )
        if not are_known or is_own:
            self.note(f"library.{name}")

    def _note_module(self, name: str, path: str) -> None:
        is_listed = any(name == package or name.startswith(f"{package}.") for package in _PACKAGES)
        if not (is_listed or path.startswith(self._standard) or self._may_load(path) or _is_loaded_by_triton()):
            self.note(f"library.{name}")


def _is_loaded_by_triton() -> bool:
    """Return whether Triton loads what it has just compiled to launch a kernel: the modules' names are its own."""
    builder = sys.modules.get(_BUILDER)
    frame: FrameType | None = sys._getframe(1)
    while builder and frame:
        if frame.f_globals is vars(builder):
            return True
        frame = frame.f_back
    return False
