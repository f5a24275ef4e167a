"""Triton's interpreter as the CPU platform mends it: bfloat16 arithmetic as on a GPU."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from pkb.platforms._interpreter import narrow, widen

pytest.importorskip("triton", reason="Triton has no build for this system")

PROGRAM = """
import torch, triton, triton.language as tl
from pkb.platforms import _interpreter
_interpreter.patch_interpreter()

@triton.jit
def kernel(x, y, product, added, larger, dot, whole, N: tl.constexpr):
    place = tl.arange(0, N)
    a, b = tl.load(x + place), tl.load(y + place)
    tl.store(product + place, a * b)
    tl.store(added + place, a + b)
    tl.store(larger + place, tl.where(a > b, a, b))
    square = place[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(dot + square, tl.dot(tl.load(x + square), tl.load(y + square)))
    tl.store(whole + place, place.to(tl.bfloat16))

torch.manual_seed(0)
x, y = torch.randn(16, 16).bfloat16(), torch.randn(16, 16).bfloat16()
outs = [torch.empty(16, dtype=torch.bfloat16) for _ in range(3)]
dot, whole = torch.empty(16, 16), torch.empty(16, dtype=torch.bfloat16)
kernel[(1,)](x, y, *outs, dot, whole, 16)
a, b = x[0], y[0]
assert torch.equal(outs[0], a * b) and torch.equal(outs[1], a + b) and torch.equal(outs[2], torch.maximum(a, b))
assert torch.allclose(dot, x.float() @ y.float(), atol=1e-5)
assert torch.equal(whole, torch.arange(16).bfloat16())
"""

EIGHT_BITS = """
import torch, triton, triton.language as tl
from pkb.platforms import _interpreter
_interpreter.patch_interpreter()

@triton.jit
def convert(x, out, N: tl.constexpr):
    place = tl.arange(0, N)
    tl.store(out + place, tl.load(x + place).to(out.dtype.element_ty))

@triton.jit
def multiply(x, y, out, N: tl.constexpr):
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + square, tl.dot(tl.load(x + square), tl.load(y + square)))

def converted(x, dtype):
    out = torch.empty(x.shape, dtype=dtype)
    convert[(1,)](x, out, x.numel())
    return out

def same(one, other):
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[one.element_size()]
    return torch.equal(one.isnan(), other.isnan()) and torch.equal(
        one.view(bits)[~one.isnan()], other.view(bits)[~other.isnan()]
    )

torch.manual_seed(0)
EIGHT = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
for eight in EIGHT:
    codes = torch.arange(256, dtype=torch.uint8).view(eight)
    most = torch.finfo(eight).max
    for wide in (torch.float32, torch.float16, torch.bfloat16):
        assert same(converted(codes, wide), codes.to(wide)), (eight, wide)
        assert same(converted(codes.to(wide), eight).float(), codes.float().clamp(-most, most)), (eight, wide)
        x = (torch.randn(4096) * 2.0 ** torch.randint(-20, 16, (4096,))).clamp(-most, most).to(wide)
        x = torch.where(x.float().abs() <= most, x, 0)
        assert same(converted(x, eight).float(), x.to(eight).float()), (eight, wide)
        between = (codes.float()[1:127] + codes.float()[:126]) / 2
        between = torch.cat([between[between.isfinite()], torch.zeros(128)])[:128].to(wide)
        assert same(converted(between, eight).float(), between.to(eight).float()), (eight, wide)
        beyond = torch.tensor([float("inf"), -float("inf"), float("nan"), -0.0]).to(wide)
        assert same(converted(beyond, eight).float()[:3], torch.tensor([most, -most, float("nan")])), eight
x, y = torch.randn(16, 16).to(torch.float8_e4m3fn), torch.randn(16, 16).to(torch.float8_e4m3fn)
out = torch.empty(16, 16)
multiply[(1,)](x, y, out, 16)
assert torch.allclose(out, x.float() @ y.float(), atol=1e-2)
"""

TUNED = """
import torch, triton, triton.language as tl
from pkb.platforms import _interpreter
_interpreter.patch_interpreter()

CONFIGS = [triton.Config({"BLOCK": block}) for block in (8, 32, 64)]
RESET = [triton.Config({"BLOCK": 32}, pre_hook=lambda args: hooked.append(1)), triton.Config({"BLOCK": 64})]
hooked = []

def add(x, out, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 32)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + place, tl.load(x + place, mask=place < n), mask=place < n)

def scale(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    tl.static_assert(EVEN == 0)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + place, tl.load(x + place, mask=place < n) * 2, mask=place < n)

def broken(x, out, n, BLOCK: tl.constexpr):
    tl.load(missing)

even = triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
def tune(configs, body=None, **rest):
    return triton.autotune(configs, key=["n"], **rest)(body or triton.jit(add))

x = torch.randn(100)
for kernel in (
    tune(CONFIGS, reset_to_zero=["out"]),
    tune(RESET, reset_to_zero=["out"]),
    tune(CONFIGS, reset_to_zero=["out"], warmup=1, rep=2),
    tune(CONFIGS, reset_to_zero=["out"], use_cuda_graph=True),
    tune(CONFIGS, reset_to_zero=["out"], prune_configs_by={"early_config_prune": lambda found, *_, **__: found[1:]}),
    tune(CONFIGS, reset_to_zero=["out"], prune_configs_by={"perf_model": lambda **k: -k["BLOCK"], "top_k": 2}),
):
    out = torch.zeros(100)
    kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100)
    assert torch.equal(out, x)
    assert kernel.best_config.kwargs["BLOCK"] >= 32
assert hooked
restored = x.clone()
tune(CONFIGS, even(triton.jit(scale)), restore_value=["x"])[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](
    restored, None, 100
)
assert torch.equal(restored, 2 * x)
assert triton.testing.do_bench(lambda: None) == triton.testing.do_bench(lambda: None, quantiles=[0.5]) > 0
assert len(triton.testing.do_bench(lambda: None, quantiles=[0.2, 0.8])) == 2
assert triton.runtime.driver.active.get_active_torch_device().type == "cpu"
try:
    tune(CONFIGS, triton.jit(broken))[(1,)](x, out, 100)
except triton.runtime.errors.InterpreterError as error:
    assert "missing" in str(error)
else:
    raise SystemExit("a broken kernel was tuned")
"""


def test_autotuned_kernels_run_without_a_driver() -> None:
    program = "import os; os.environ['TRITON_INTERPRET'] = '1'\n" + TUNED
    ran = subprocess.run([sys.executable, "-c", _as_file(program)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_8_bit_floats_are_converted_as_torch_does_and_saturate() -> None:
    program = "import os; os.environ['TRITON_INTERPRET'] = '1'\n" + EIGHT_BITS
    ran = subprocess.run([sys.executable, "-c", _as_file(program)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_bfloat16_arithmetic_is_not_done_on_integers() -> None:
    program = "import os; os.environ['TRITON_INTERPRET'] = '1'\n" + PROGRAM
    # Triton reads a kernel's source from its file.
    ran = subprocess.run([sys.executable, "-c", _as_file(program)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def _as_file(program: str) -> str:
    return (
        "import runpy, tempfile, pathlib\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    path = pathlib.Path(folder) / 'program.py'\n"
        f"    path.write_text({program!r})\n"
        "    runpy.run_path(str(path))\n"
    )


def test_rounding_agrees_with_torch() -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, size=100_000, dtype=np.uint32)
    values = bits.view(np.float32)
    expected = torch.from_numpy(values.copy()).bfloat16()
    ours = torch.from_numpy(narrow(values).view(np.int16).copy()).view(torch.bfloat16)
    assert torch.equal(ours.nan_to_num(nan=7.0), expected.nan_to_num(nan=7.0))
    assert torch.equal(
        torch.from_numpy(widen(narrow(values))).nan_to_num(nan=7.0), expected.float().nan_to_num(nan=7.0)
    )
