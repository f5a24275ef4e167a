"""Triton is made ready for ranks without a GPU being touched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="there is no build of Triton for this system")

CHECK = """
import pkb.platforms._triton_ready as ready
ready.compile_once()
import torch
print(torch.cuda.is_initialized())
"""


def test_compiles_for_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    ran = subprocess.run(
        [sys.executable, "-c", CHECK],
        capture_output=True,
        text=True,
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path)},
    )
    assert ran.stdout == "False\n", ran.stderr
    assert list(tmp_path.rglob("_nothing.cubin"))
