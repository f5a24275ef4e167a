"""What of CUDA candidates can be tested without a GPU: that they compile, and what is said when they do not."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
import torch

from pkb.backends import find_backend, recognise
from pkb.base.compiler_log import trim_log
from pkb.candidate import Candidate
from pkb.cuda_lib import Exchange, Kernel, cdiv, full_source, whole_packs
from pkb.judge.judge import Judge
from pkb.record import Verdict
from pkb.settings import ProblemSettings
from pkb.symmetric import resident_programs, share

KERNELS = sorted((Path(__file__).parents[1] / "solutions" / "cuda").glob("*.py"))
needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not on the PATH")


def stem(kernel: Path) -> str:
    return kernel.stem.removesuffix("_cuda")


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"solution_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nvcc(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "whole.cu"
    file.write_text(source)
    command = ["nvcc", "-arch=sm_90", "-std=c++17", "-Werror", "all-warnings", "-ptx", "-o", str(folder / "ptx"), file]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_all_are_here() -> None:
    assert sorted(int(stem(kernel).split("_")[0]) for kernel in KERNELS) == [1, 2, 7, 8, 12, 13, 16, 18, 45, 73]


@needs_nvcc
@pytest.mark.parametrize(("dtype", "world"), [(torch.float32, 1), (torch.bfloat16, 8), (torch.float16, 4)], ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=stem)
def test_kernels_compile(kernel: Path, dtype: torch.dtype, world: int, tmp_path: Path) -> None:
    built = nvcc(full_source(imported(kernel).SOURCE, dtype, [f"-DWORLD={world}"]), tmp_path)
    assert built.returncode == 0, trim_log(built.stdout + built.stderr)


def test_no_kernel_needs_a_header() -> None:
    for kernel in KERNELS:
        assert "#include" not in full_source(imported(kernel).SOURCE)


@needs_nvcc
def test_errors_name_lines_of_the_candidate(tmp_path: Path) -> None:
    built = nvcc(full_source("__device__ int one;\n__device__ int two = missing;\n"), tmp_path)
    assert trim_log(built.stderr)[0].startswith('kernel.cu(2): error: identifier "missing" is undefined')


@needs_nvcc
def test_definitions_leave_the_header_alone(tmp_path: Path) -> None:
    options = ["-DT=7", "-DROWS=T", "-DFLAG"]
    built = nvcc(full_source("static_assert(ROWS == 7 && FLAG == 1);", torch.float16, options), tmp_path)
    assert built.returncode == 0, built.stderr


@pytest.mark.parametrize(
    ("tiles", "per_sm", "expected"),
    [(1000, 1, 33), (1000, 2, 66), (1000, 4, 100), (5, 2, 5), (0, 1, 1)],
)
def test_programs_are_resident_together(tiles: int, per_sm: int, expected: int) -> None:
    ex = Exchange(0, 4, 0, 0, start=0, half=8, channels=100, resident=share(132, 4), tensor=torch.empty(0))
    assert ex.programs(tiles, per_sm) == expected


def test_a_rank_has_its_share_of_a_gpu_and_few_programs_on_a_cpu() -> None:
    assert [share(132, world) for world in (1, 2, 8, 100)] == [132, 66, 16, 8]
    assert resident_programs(torch.device("cpu"), 8) == 16


def test_halves_take_turns_behind_the_start() -> None:
    ex = Exchange(0, 1, 0, 0, start=16, half=8, channels=1, resident=1, tensor=torch.empty(0))
    assert [ex.next_offset() for _ in range(3)] == [24, 16, 24]


def test_sizes() -> None:
    assert (cdiv(9, 4), cdiv(8, 4)) == (3, 2)
    assert (whole_packs(9, torch.bfloat16), whole_packs(9, torch.float32)) == (16, 12)


def test_arguments_that_no_kernel_takes() -> None:
    kernel = Kernel("twice", b"", "twice")
    with pytest.raises(TypeError, match=r"argument 1 of twice is a tensor on cpu; a kernel takes CUDA tensors"):
        kernel(1, 32, 5, torch.zeros(1))
    with pytest.raises(TypeError, match=r"argument 0 of twice is a str"):
        kernel(1, 32, "5")


def test_a_dtype_without_kernels() -> None:
    with pytest.raises(TypeError, match=r"no CUDA kernel for torch.int64; use one of torch.float32"):
        full_source("", torch.int64)


@pytest.mark.parametrize(
    ("source", "backend"),
    [
        (b"import torch\nfrom pkb.cuda_lib import compile\n", "cuda"),
        (b"from pkb import cuda_lib\n", "cuda"),
        (b"import triton\nfrom pkb.cuda_lib import compile\n", "cuda"),
        (b"from torch.utils.cpp_extension import load_inline\nload_inline('x', cuda_sources=[''])\n", "cuda"),
        (b"from torch.utils.cpp_extension import load_inline\nload_inline('x', cpp_sources=[''])\n", "torch"),
        (b"import triton\n", "triton"),
    ],
)
def test_the_kind_of_a_source(source: bytes, backend: str) -> None:
    assert recognise(source).name == backend


@pytest.mark.skipif(find_backend("cuda").find_missing() is None, reason="CUDA kernels run here")
def test_without_a_gpu_it_is_not_the_kernels_fault(judge: Judge) -> None:
    record = judge.judge(judge.pose("allreduce", ProblemSettings(nproc=2, trials=1)), Candidate.read(KERNELS[0]))
    assert record.verdict is Verdict.ENVIRONMENT
    assert re.search("without CUDA|no GPU", record.reason)
