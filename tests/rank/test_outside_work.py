"""Which programs and modules the track scratch allows a kernel to start and load."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pkb.rank.observers.outside_work import OutsideWork


@pytest.fixture
def work() -> OutsideWork:
    """An observer that is not installed: an audit hook would stay in this process."""
    found = OutsideWork.__new__(OutsideWork)
    found.noted = []  # type: ignore[attr-defined]
    found.note = found.noted.append  # type: ignore[attr-defined]
    found._writable, found._standard, found._may_load = (
        ("/tmp/",),
        ("/usr/lib/python3/lib-dynload/",),
        lambda path: False,
    )
    return found


@pytest.mark.parametrize(
    "command",
    [
        ["/usr/bin/gcc", "main.c", "-O3", "-shared", "-fPIC", "-o", "/tmp/main.so"],
        ["/usr/bin/x86_64-linux-gnu-gcc-12", "main.c"],
        ["/opt/triton/bin/ptxas", "-v", "--gpu-name=sm_90a", "kernel.ptx"],
        ["/sbin/ldconfig", "-p"],
    ],
)
def test_compilers_may_run(work: OutsideWork, command: list[str]) -> None:
    work._hear("os.posix_spawn", (command[0], command, {}))
    work._look([command[0].encode()], [word.encode() for word in command])
    assert work.noted == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["/usr/bin/python3", "-c", "1"], "python3"),
        (["/tmp/gcc", "main.c"], "gcc"),
        (["/usr/bin/gcc", "-wrapper", "/tmp/mine", "main.c"], "gcc"),
        (["/usr/bin/gcc", "@/tmp/arguments"], "gcc"),
        (["/usr/bin/gcc", "-fplugin=/tmp/mine.so"], "gcc"),
        (["/bin/sh", "-c", "gcc main.c"], "sh"),
    ],
)
def test_other_programs_are_noted(work: OutsideWork, command: list[str], name: str) -> None:
    work._hear("os.posix_spawn", (command[0], command, {}))
    work._hear("os.exec", (command[0], command, {}))
    work._look([command[0].encode()], [word.encode() for word in command])
    assert work.noted == [f"library.{name}"] * 3  # type: ignore[attr-defined]


def test_compiled_modules_of_packages_are_noted(work: OutsideWork) -> None:
    for name, path in (
        ("pandas._libs.algos", "/usr/lib/python3/site-packages/pandas/_libs/algos.so"),
        ("numpy._core._umath_tests", "/usr/lib/python3/site-packages/numpy/_core/_umath_tests.so"),
        ("torchish._C", "/usr/lib/python3/site-packages/torchish/_C.so"),
    ):
        work._hear("import", (name, path, None, None, None))
        assert work.noted.pop() == f"library.{name}"  # type: ignore[attr-defined]
    work._hear("import", ("torch._C", "/usr/lib/python3/site-packages/torch/_C.so", None, None, None))
    work._hear("import", ("_bisect", "/usr/lib/python3/lib-dynload/_bisect.so", None, None, None))
    work._hear("import", ("einops", None, [], [], []))
    assert work.noted == []  # type: ignore[attr-defined]


def test_sockets_are_noted(work: OutsideWork) -> None:
    work._hear("socket.__new__", (object(), 1, 1, 0))
    assert work.noted == ["socket.socket"]  # type: ignore[attr-defined]


LAUNCHER = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "own_launcher", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_own_launcher(void) { return PyModule_Create(&module); }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="Triton compiles its launchers with gcc")
def test_what_triton_compiles_to_launch_kernels_is_not_noted(work: OutsideWork, tmp_path: Path) -> None:
    """Triton's own function compiles and loads a module; a copy of it, loaded by hand, is noted."""
    script = tmp_path / "script.py"
    script.write_text(
        "import importlib.util, shutil\n"
        "from triton.runtime.build import compile_module_from_src\n"
        "from pkb.rank.observers.outside_work import OutsideWork\n"
        "noted = []\n"
        "OutsideWork(noted.append, lambda path: False, ('/nowhere/',))\n"
        f"module = compile_module_from_src({LAUNCHER!r}, 'own_launcher')\n"
        "assert noted == [], noted\n"
        f"copy = shutil.copy(module.__file__, {str(tmp_path)!r})\n"
        "spec = importlib.util.spec_from_file_location('own_launcher', copy)\n"
        "importlib.util.module_from_spec(spec)\n"
        "assert noted == ['library.own_launcher'], noted\n"
    )
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, str(script)], env=environment, check=True)
