"""Triton is made ready for ranks without a GPU being touched."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="there is no build of Triton for this system")

CHECK = """
import pkb.platforms._triton_ready as ready
ready.compile_once()
import torch
print(torch.cuda.is_initialized())
"""

SOURCE = """
#include <Python.h>
#include "seven.h"
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "launcher", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_launcher(void) {
    PyObject *module = PyModule_Create(&definition);
    PyModule_AddIntConstant(module, "value", SEVEN);
    return module;
}
"""
BUILD = """
import importlib.util, sys
from pkb.platforms._triton_ready import build_unoptimised
folder, headers = sys.argv[1:]
path = build_unoptimised("launcher", f"{folder}/main.c", folder, ["/usr/lib"], [headers], ["libm.so.6", "dl"])
spec = importlib.util.spec_from_file_location("launcher", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.value)
"""
lacking = [
    *([] if shutil.which("gcc") else ["gcc"]),
    *([] if Path(sysconfig.get_paths()["include"], "Python.h").exists() else ["Python.h"]),
]


def test_compiles_for_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    ran = subprocess.run(
        [sys.executable, "-c", CHECK],
        capture_output=True,
        text=True,
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path)},
    )
    assert ran.stdout == "False\n", ran.stderr
    assert list(tmp_path.rglob("_empty_kernel.cubin"))


@pytest.mark.skipif(bool(lacking), reason=f"launchers are compiled in C, and there is no {' nor '.join(lacking)}")
def test_a_launcher_is_built_as_triton_asks_for_it(tmp_path: Path) -> None:
    headers = tmp_path / "headers"
    headers.mkdir()
    (headers / "seven.h").write_text("#define SEVEN 7\n")
    (tmp_path / "main.c").write_text(SOURCE)
    command = [sys.executable, "-c", BUILD, str(tmp_path), str(headers)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout.strip() == "7", ran.stderr
