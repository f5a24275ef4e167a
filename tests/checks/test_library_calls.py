"""The track scratch allows by a list: honest kernels pass it, and what it refuses is named."""

import platform
import re
from collections import defaultdict

import pytest
import torch

from pkb.candidate import Candidate
from pkb.checks._operators import Kind, classify
from pkb.checks.library_calls import CALLS, EXCHANGED_BYTES, EXCHANGING_CALLS, LibraryCallCheck
from pkb.judge.judge import Judge
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, ProblemSettings, Track

ALLOWED = """
    abs add_ addcmul all amax arange argmax argsort as_strided bernoulli_ bincount bitwise_left_shift bucketize cat
    clamp clone complex contiguous copy_ cos count_nonzero cross_entropy_loss cummax cumprod cumsum diff div
    dropout embedding empty eq erfinv exp expand eye fill_ flip floor_divide fmod full gather gelu histc index
    index_add_ index_put_ isfinite item kthvalue layer_norm le lerp linalg_vector_norm linspace log1p log_softmax
    logcumsumexp logsumexp masked_fill masked_select max max_pool2d mean median meshgrid min minimum mse_loss mul
    nan_to_num native_layer_norm neg nll_loss_forward nonzero normal_ one_hot outer permute pow prod put_ quantile
    rand randint randperm relu repeat_interleave reshape rms_norm roll rsqrt scatter_ scatter_add_ scatter_reduce
    searchsorted select sigmoid sign silu slice slice_backward softmax softplus_backward sort split sqrt stack std
    sub sum t take tanh tanh_backward tensor_split threshold_backward tile to topk transpose tril unbind unfold
    unique_consecutive unsqueeze var_mean view view_as_complex where xlogy_ zeros _foreach_add_ _local_scalar_dense
    _softmax _to_copy _unsafe_view __and__ __lshift__ _log_softmax_backward_data _fused_rms_norm avg_pool2d
    special_expit kron
"""
PRODUCTS = """
    addbmm addmm addmm_ addmv baddbmm bilinear bmm cdist chain_matmul cholesky conv1d conv2d conv_transpose2d
    convolution corrcoef cov cudnn_convolution det dot einsum fft_fft fft_irfft _fft_c2c gru inner istft inverse
    linalg_cholesky_ex linalg_eigh linalg_inv linalg_lstsq linalg_matmul linalg_multi_dot linalg_qr linalg_solve
    linalg_solve_triangular linalg_svd linalg_vecdot linear lstm lu_solve matmul matrix_exp mkldnn_convolution
    mkldnn_linear mkldnn_rnn_layer mm mv _addmm_activation _convolution _cudnn_rnn _euclidean_dist _grouped_mm
    _int_mm _scaled_mm _scaled_grouped_mm _sparse_mm _scaled_dot_product_flash_attention_for_cpu _trilinear
    _weight_int4pack_mm _foreach_mm scaled_dot_product_attention sparse_sampled_addmm stft svd tensordot
    triangular_solve vdot fbgemm_linear_int8_weight quantized_lstm_cell _native_multi_head_attention
"""
ELSEWHERE = {
    "mkldnn._linear_pointwise": Kind.PRODUCT,
    "mkl._mkl_linear": Kind.PRODUCT,
    "quantized.linear": Kind.PRODUCT,
    "numpy.matmul": Kind.PRODUCT,
    "library.libopenblas.so.0": Kind.PRODUCT,
    "c10d.allreduce_": Kind.COMMUNICATION,
    "_c10d_functional.all_reduce": Kind.COMMUNICATION,
    "dist.all_reduce": Kind.COMMUNICATION,
    "gloo.all_gather": Kind.COMMUNICATION,
    "symm_mem.one_shot_all_reduce": Kind.COMMUNICATION,
    "ProcessGroup.ProcessGroupGloo.allreduce": Kind.COMMUNICATION,
    "rpc.TensorPipeAgent": Kind.COMMUNICATION,
    "c10d.barrier": Kind.ALLOWED,
    "gloo.barrier": Kind.ALLOWED,
    "symm_mem.get_remote_tensors": Kind.ALLOWED,
    "my_library.my_matmul": Kind.ALLOWED,
    "prims.convert_element_type": Kind.ALLOWED,
    "aten.an_operator_of_next_year": Kind.UNKNOWN,
}
UNDECIDED = re.compile(
    r"sparse|nested|jagged|quant|qparams|q_|qscheme|int_repr|sampler|upsample|sobol|_test|ctc_loss|sym_constrain|"
    r"batch_dim|_foobar|_fused_moving|_fill_mem|sdp|linalg_check|_new_zeros_with|xla|rowwise_prune|spdiags|dirichlet|"
    r"coalesce|_dim[IV]|padded|_functional_assert|_cslt"
)
"""Operators that a kernel hardly calls, and that are refused because they are in no list."""


@pytest.mark.parametrize("names", [ALLOWED, PRODUCTS], ids=["allowed", "products"])
def test_common_operators_are_decided(names: str) -> None:
    wanted = Kind.ALLOWED if names is ALLOWED else Kind.PRODUCT
    assert {name: kind for name in names.split() if (kind := classify(f"aten.{name}")) is not wanted} == {}


def test_other_namespaces_are_decided() -> None:
    assert {name: classify(name) for name in ELSEWHERE} == ELSEWHERE


def test_every_operator_of_this_torch_that_is_in_no_list_is_an_unusual_one() -> None:
    names = {name.removeprefix("aten::").partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    found: dict[Kind, list[str]] = defaultdict(list)
    for name in names:
        if hasattr(torch.ops.aten, name):
            found[classify(f"aten.{name}")].append(name)
    assert len(found[Kind.ALLOWED]) > 900
    assert len(found[Kind.PRODUCT]) > 250
    left = [name for name in found[Kind.UNKNOWN] if not UNDECIDED.search(name)]
    # A release may have a few that others have not.
    assert len(left) < 8, left


def test_the_message_names_the_operator_and_says_what_to_do() -> None:
    def explain(**calls: int) -> str:
        breach = LibraryCallCheck.conclude(
            [{}, {name.replace("__", "."): n for name, n in calls.items()}], Track.SCRATCH
        )
        return breach.reason if breach else ""

    assert explain(aten__add=3, own__gemm=1) == ""
    assert explain(aten__mm=3) == "called aten.mm in the scratch track; write it yourself, or use --track any"
    assert "symmetric memory" in explain(c10d__allreduce_=1)
    assert "called aten.grid_sampler in the scratch track; it is none of the operators" in explain(aten__grid_sampler=1)
    assert LibraryCallCheck.conclude([{"aten.mm": 1}], Track.ANY) is None


def test_handles_may_be_exchanged_in_a_few_calls_and_data_never() -> None:
    def explain(calls: int, exchanging: int, most: int = 300) -> str:
        report = {CALLS: calls, EXCHANGING_CALLS: exchanging, EXCHANGED_BYTES: most if exchanging else 0}
        breach = LibraryCallCheck.conclude([{CALLS: calls}, report], Track.SCRATCH)
        return breach.reason if breach else ""

    assert explain(15, 0) == explain(15, 4) == explain(3, 2) == explain(1, 0) == ""
    assert "rank 1 exchanged data on the host in 5 calls" in explain(15, 5)
    assert "in 3 calls" in explain(3, 3)
    assert "of 5000 bytes in one call" in explain(15, 1, 5000)


HEAD = """
import threading
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
"""
PARTS = {
    "softmax by hand": "e = (x - x.amax(1, keepdim=True)).exp()\nreturn e / e.sum(1, keepdim=True)",
    "softmax, norms and a loss": (
        "y = F.layer_norm(F.softmax(x, 1), x.shape[1:]) + F.rms_norm(x, x.shape[1:])\n"
        "return F.cross_entropy(y, torch.zeros(len(x), dtype=torch.long), reduction='none')[:, None]"
    ),
    "top-k and gather": "v, i = x.topk(2, 1)\nreturn (x.gather(1, i) - v).sum(1, keepdim=True)",
    "scans": "return x.cumsum(0) + x.clamp(0, 1).cumprod(1) + x.cummax(1).values + x.logcumsumexp(0)",
    "index_add": "return torch.zeros_like(x).index_add_(0, torch.arange(len(x)).flip(0), x)",
    "bucketize": "return torch.bucketize(x, torch.linspace(-1, 1, 9)).to(x.dtype)",
    "scatter_reduce": "return torch.zeros_like(x).scatter_reduce(1, x.argsort(1), x, 'amax', include_self=False)",
    "chains of where": "return torch.where(x > 0, torch.where(x > 1, x * 2, x.sqrt().nan_to_num()), -x).tril()",
    "complex views": "z = torch.view_as_complex(torch.stack([x, -x], -1))\nreturn (z * z.conj()).real + z.angle()",
    "bits of integers": "n = x.view(torch.int32)\nreturn (((n >> 3) ^ (n << 1)) & 255 | 1).to(x.dtype)",
    "masked select": "y = torch.zeros_like(x)\ny[x > 0] = x.masked_select(x > 0)\nreturn y",
    "sort and search": "s = x.flatten().sort().values\nreturn torch.searchsorted(s, x).to(x.dtype)",
    "outer sums": "return (x[:, :, None] * x[:, None, :]).sum(-1) + torch.outer(x[:, 0], x[0])",
    "autograd": (
        "with torch.enable_grad():\n    y = x.clone().requires_grad_()\n    loss = (y.sin() * y.exp()).sum()\n"
        "return torch.autograd.grad(loss, y)[0]"
    ),
    "numpy and back": "a = x.numpy()\nreturn torch.from_numpy(np.sqrt(np.abs(a)).cumsum(0) / np.linalg.norm(a))",
    "a table of constants": "return TABLE[: len(x), :1].to(x.dtype) + x",
    "float8": "return x.to(torch.float8_e4m3fn).to(x.dtype) + x.bfloat16().float() + x.half().float()",
    "random numbers": (
        "g = torch.Generator().manual_seed(1)\n"
        "return torch.rand(x.shape, generator=g) + torch.randperm(len(x))[:, None] + F.dropout(x, 0.5)"
    ),
    "a thread": (
        "out = []\nt = threading.Thread(target=lambda: out.append(x.exp().sum(0)))\nt.start()\nt.join()\n"
        "return out[0] + x"
    ),
    "windows": "p = F.pad(x, (1, 1))\nreturn p.unfold(1, 3, 1).mean(-1) + F.max_pool1d(p[None], 3, 1)[0] + x.roll(1)",
    "unique and histogram": "u, c = x.unique(return_counts=True)\nreturn x + c.sum() + x.histc(4).max() + u.median()",
    "an operator of its own": "return torch.ops.kernels_of_mine.twice(x)",
    "counts and statistics": "return x.var(0) + x.quantile(0.5, 0) + x.norm() + x.std() + (x == x).sum()",
    "lists of tensors": "a = torch._foreach_mul([x], 2.0)\ntorch._foreach_add_(a, 1.0)\nreturn torch.stack(a).sum(0)",
    "a barrier": "handle(x.shape).barrier(0)\nreturn buffer(x.shape)[0].copy_(x).clone()",
    "handles as objects": "exchange_once()\nreturn x.abs()",
    "a dot in a kernel": ("y = torch.empty(16, 16)\nmultiply[(1,)](x.new_ones(16, 16), y, N=16)\nreturn y[:1, :1] + x"),
    "an autotuned kernel": (
        "y = torch.empty_like(x)\ngrid = lambda meta: (triton.cdiv(x.numel(), meta['N']),)\n"
        "add_one[grid](x, y, x.numel())\nreturn y"
    ),
}
REST = """
TABLE = torch.from_numpy(np.eye(64).cumsum(0))
library = torch.library.Library("kernels_of_mine", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")


@cache
def buffer(shape):
    kept = symm_mem.empty(*shape, dtype=torch.float32, device="cpu")
    return kept, symm_mem.rendezvous(kept, dist.group.WORLD)


def handle(shape):
    return buffer(shape)[1]


@cache
def exchange_once():
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, "a handle of some memory" * 20)
    return found


def solution(tensor):
    return tensor + 0 * part(tensor).nan_to_num()
"""


KERNELS = """
import triton
import triton.language as tl


@triton.jit
def multiply(x, y, N: tl.constexpr):
    place = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + place, tl.dot(tl.load(x + place), tl.load(x + place)))


@triton.autotune([triton.Config({"N": 16}), triton.Config({"N": 32})], key=["count"])
@triton.jit
def add_one(x, y, count, N: tl.constexpr):
    place = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + place, tl.load(x + place, mask=place < count) + 1, mask=place < count)
"""


def judge_in_scratch(judge: Judge, source: str, problem: str = "allreduce", **settings: bool) -> Record:
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    return judge.judge(setup, Candidate.of(source.encode()), JudgementSettings(track=Track.SCRATCH, **settings))


@pytest.mark.parametrize("name", PARTS)
def test_honest_kernels_pass(judge: Judge, name: str) -> None:
    body = "".join(f"    {line}\n" for line in PARTS[name].splitlines())
    kernels = KERNELS if "](" in body else ""
    record = judge_in_scratch(judge, f"{HEAD}{kernels}{REST}\n\ndef part(x):\n{body}")
    assert record.correct, record.reason


PRODUCT_HEAD = "import operator, os\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\n"
REFUSED = {
    "aten.mm": "f = torch.jit.script(lambda_of_products)\nreturn f(A, B)",
    "aten.matmul": "return torch.ops.products.of_mine(A, B)",
    "aten.dot": "return torch.vmap(torch.vmap(torch.dot, (None, 1)), (0, None))(A, B)",
    "aten.embedding_bag": (
        "rows = torch.arange(A.shape[1]).repeat(len(A), 1)\n"
        "return F.embedding_bag(rows, B, per_sample_weights=A.contiguous(), mode='sum')"
    ),
    "aten._sparse_mm": "return torch.sparse.mm(A.to_sparse(), B)",
    "numpy.dot": "return torch.from_numpy(np.asarray(np.matrix(A.numpy()) * np.matrix(B.numpy())))",
    "numpy.ndarray.dot": "return torch.from_numpy(A.numpy().dot(B.numpy()))",
    "numpy.ndarray.__matmul__": "return torch.from_numpy(operator.matmul(A.numpy(), B.numpy()))",
    "numpy.c_einsum": "return torch.from_numpy(np.einsum('ij,jk->ik', A.numpy(), B.numpy()))",
    "library.torch.autograd._enable_record_function": (
        "torch.autograd._enable_record_function(False)\nC = A @ B\n"
        "torch.autograd._enable_record_function(True)\nreturn C"
    ),
    "library.torch.autograd._disable_profiler": "torch._C._autograd._disable_profiler()\nreturn A @ B",
    "numpy.dgelsd": (
        "m, k, n = *A.shape, B.shape[1]\na = np.eye(m + k)\na[:m, m:] = -A\nb = np.zeros((n, m + k))\nb[:, m:] = B.T\n"
        "s, work, iwork = np.zeros(m + k), np.zeros(100000), np.zeros(100000, np.int32)\n"
        "np.linalg.lapack_lite.dgelsd(m + k, m + k, n, np.asfortranarray(a).T, m + k, b, m + k, s, -1, 0, work, 100000,"
        " iwork, 0)\nreturn torch.from_numpy(b[:, :m].T).float().contiguous()"
    ),
    "library.os.fork": "pid = os.fork() or os._exit(0)\nos.waitpid(pid, 0)\nreturn (A[:, :, None] * B[None]).sum(1)",
}
NATIVE = {
    "libc's dlsym": (
        "native.dlsym",
        "find = ctypes.CDLL(None).dlsym\nfind.restype = ctypes.c_void_p\n"
        "return product(find(ctypes.c_void_p(ctypes.CDLL(TORCH)._handle), bytes([115, 103, 101, 109, 109, 95])))",
    ),
    "an address": ("in libtorch_cpu.so in the scratch track", "return product(read_symbol('sgemm_'))"),
    "an address, put into a function": (
        "in libtorch_cpu.so in the scratch track",
        "call = ctypes.CFUNCTYPE(None)()\n"
        "ctypes.memmove(ctypes.byref(call), (ctypes.c_void_p * 1)(read_symbol('sgemm_')), 8)\nreturn product(call)",
    ),
    "an address in a structure": (
        "in libtorch_cpu.so in the scratch track",
        "kind = type('Table', (ctypes.Structure,), {'_fields_': [('call', ctypes.CFUNCTYPE(None))]})\n"
        "return product(kind.from_buffer(bytearray(read_symbol('sgemm_').to_bytes(8, 'little'))).call)",
    ),
    "a class of its own": (
        "in libtorch_cpu.so in the scratch track",
        "kind = type('Function', (ctypes._CFuncPtr,), {'_flags_': 1})\nreturn product(kind(read_symbol('sgemm_')))",
    ),
    "_ctypes.call_function": (
        "in libtorch_cpu.so in the scratch track",
        "return product(lambda *args: _ctypes.call_function(read_symbol('sgemm_'), args))",
    ),
    "a method of a library": ("library.sgemm_", "return product(getattr(ctypes.CDLL(TORCH), 'sgemm_'))"),
    "an item of a library": ("library.sgemm_", "return product(ctypes.CDLL(TORCH)['sgemm_'])"),
    "a variable in a library": (
        "library.sgemm_",
        "return product(ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(TORCH), 'sgemm_')))",
    ),
    "_ctypes.dlsym": (
        "library.sgemm_",
        "return product(_ctypes.dlsym(ctypes.CDLL(TORCH)._handle, 'sgemm_'))",
    ),
    "a copy of the library": (
        "library.mine.so",
        "import shutil\npath = os.path.abspath('mine.so')\n"
        "shutil.copy(os.path.join(os.path.dirname(torch.__file__), 'lib', 'libc10.so'), path)\nctypes.CDLL(path)\n"
        "return (A[:, :, None] * B[None]).sum(1)",
    ),
    "a second ctypes": (
        "native._ctypes",
        "import sys\nsys.modules.pop('_ctypes')\nimport _ctypes\nreturn (A[:, :, None] * B[None]).sum(1)",
    ),
}
NATIVE_REST = """
TORCH = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")


def read_symbol(name):
    with open(TORCH, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        sections, size, count = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
        heads = [struct.unpack_from("<IIQQQQIIQQ", data, sections + k * size) for k in range(count)]
        table = next(head for head in heads if head[1] == 11)
        texts = heads[table[6]]
        place = data.find(b"\\0" + name.encode() + b"\\0", texts[4]) + 1 - texts[4]
        entries = struct.iter_unpack("<IBBHQQ", data[table[4] : table[4] + table[5]])
        value = next(entry[4] for entry in entries if entry[0] == place)
    with open("/proc/self/maps") as file:
        return int(next(line for line in file if line.rstrip().endswith("libtorch_cpu.so")).split("-")[0], 16) + value


def solution(A, B):
    def product(call):
        call = ctypes.CFUNCTYPE(None)(call) if isinstance(call, int) else call
        (m, k), n = A.shape, B.shape[1]
        out, left, right = A.new_empty(m, n), A.contiguous(), B.contiguous()
        sizes = [ctypes.byref(ctypes.c_int(size)) for size in (n, m, k)]
        one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
        data = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (right, left, out)]
        call(b"N", b"N", *sizes, one, data[0], sizes[0], data[1], sizes[2], zero, data[2], sizes[0])
        return out

"""
PRODUCT_REST = """
library = torch.library.Library("products", "DEF")
library.define("of_mine(Tensor a, Tensor b) -> Tensor")
library.impl("of_mine", lambda a, b: a @ b, "CompositeExplicitAutograd")


def lambda_of_products(a, b):
    return a @ b
"""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_at_run_time_is_named(judge: Judge, name: str) -> None:
    body = "".join(f"    {line}\n" for line in REFUSED[name].splitlines())
    source = f"{PRODUCT_HEAD}{PRODUCT_REST}\n\ndef solution(A, B):\n{body}"
    record = judge_in_scratch(judge, source, "13_gemm_allreduce", screen=False)
    assert (record.verdict, record.evidence.check) == (Verdict.CHEAT, "library-call"), record.reason
    assert name in record.reason


@pytest.mark.skipif(platform.machine() != "x86_64", reason="torch is linked with MKL on x86-64 only")
@pytest.mark.parametrize("way", NATIVE)
def test_native_functions_are_told_by_where_they_lie(judge: Judge, way: str) -> None:
    name, body = NATIVE[way]
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"import _ctypes, ctypes, mmap, os, struct\nimport torch\n{NATIVE_REST}{lines}"
    record = judge_in_scratch(judge, source, "13_gemm_allreduce", screen=False)
    assert (record.verdict, record.evidence.check) == (Verdict.CHEAT, "library-call"), record.reason
    assert name in record.reason
