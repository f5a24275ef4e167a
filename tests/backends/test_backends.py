"""Which backend takes a source, and what it adds to a build."""

from pathlib import Path

import pytest

from pkb.backends import parallelkittens, recognise
from pkb.base import toolchain

KITTENS = b"from torch.utils.cpp_extension import load_inline\nCUDA = '''\n#include \"kittens.cuh\"\n'''"
NOTHING_GIVEN = {"name": "x", "extra_cuda_cflags": None, "extra_ldflags": None, "extra_include_paths": None}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (
            b"from torch.utils.cpp_extension import load_inline\nCUDA = '''\n#include \"kittens.cuh\"\n'''",
            "parallelkittens",
        ),
        (b"import triton\nCUDA = '# include <prototype.cuh>'", "parallelkittens"),
        (b"import os\nROOT = os.environ['THUNDERKITTENS_ROOT']", "parallelkittens"),
        (b'import torch\n# #include "kittens.cuh", or THUNDERKITTENS_ROOT', "torch"),
        (b"import triton\n# not with kittens.cuh", "triton"),
    ],
)
def test_a_source_is_recognised_by_what_it_says(source: bytes, name: str) -> None:
    assert recognise(source).name == name


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "kittens.cuh").touch()
    monkeypatch.setenv("THUNDERKITTENS_ROOT", str(tmp_path))
    return tmp_path


def test_parallelkittens_says_what_it_lacks(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    assert "nvcc" in str(parallelkittens.find_missing())
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: "/usr/local/cuda/bin/nvcc")
    monkeypatch.setattr(toolchain, "query_compute_capabilities", lambda: ("8.0",))
    assert "H100-class" in str(parallelkittens.find_missing())
    monkeypatch.setattr(toolchain, "query_compute_capabilities", lambda: ("8.0", "9.0"))
    assert parallelkittens.find_missing() is None
    monkeypatch.setenv("THUNDERKITTENS_ROOT", str(checkout / "elsewhere"))
    assert "set THUNDERKITTENS_ROOT to a checkout" in str(parallelkittens.find_missing())


def test_parallelkittens_adds_headers_and_flags(checkout: Path) -> None:
    added = parallelkittens.complete_arguments(dict(NOTHING_GIVEN))
    assert added["extra_include_paths"] == [str(checkout / "include"), str(checkout / "prototype")]
    assert {"-std=c++20", "-DKITTENS_HOPPER", "-gencode=arch=compute_90a,code=sm_90a"} <= {*added["extra_cuda_cflags"]}
    assert added["extra_ldflags"][-1] == "-lcuda"


def test_what_a_source_chose_itself_stands(checkout: Path) -> None:
    own = ["-std=c++23", "-DKITTENS_SM100", "-gencode", "arch=compute_100a,code=sm_100a"]
    given = NOTHING_GIVEN | {"extra_cuda_cflags": own, "extra_ldflags": ["-lcuda"], "extra_include_paths": ["/mine"]}
    added = parallelkittens.complete_arguments(given)
    flags = added["extra_cuda_cflags"]
    assert flags[: len(own)] == own
    assert not any("90a" in flag or "HOPPER" in flag or flag == "-std=c++20" for flag in flags)
    assert "--expt-extended-lambda" in flags
    assert added["extra_ldflags"] == ["-lcuda"]
    assert added["extra_include_paths"][0] == "/mine"
    assert given["extra_cuda_cflags"] is own
