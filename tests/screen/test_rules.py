"""Every rule finds what it is meant for, and does not object to similar honest code."""

from dataclasses import dataclass

import pytest

from pkb.backends import find_backend, recognise
from pkb.screen import ScreenFinding, Severity, load_rules, screen
from pkb.settings import Track

HEAD = """import ctypes, functools, gc, inspect, os, pickle, signal, subprocess, sys, threading, time
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

"""
KERNEL = """import torch, triton, triton.language as tl
import torch.distributed as dist

@triton.jit
def kernel(x, n: tl.constexpr):
    tl.store(x, 0.0)

"""
CUDA = (
    HEAD
    + '''SOURCE = r"""
// ncclAllReduce and cublasSgemm are only mentioned here
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
void run(torch::Tensor x) { %s }
"""
module = load_inline("name", cpp_sources="void run(torch::Tensor x);", cuda_sources=SOURCE, functions=["run"])

def solution(x):
    module.run(x)
    return x
'''
)


def make_source(text: str) -> str:
    """Return a whole file as it is, and put the body of a solution into the function `solution(x, y)`."""
    if "def solution" in text:
        return text
    return HEAD + "def solution(x, y):\n" + "".join(f"    {line}\n" for line in text.splitlines())


def list_findings(text: str, track: Track = Track.ANY, backend: str | None = None) -> list[ScreenFinding]:
    encoded = make_source(text).encode()
    kind = find_backend(backend) if backend else recognise(encoded)
    return screen(encoded, kind, track)


def list_rules(text: str, track: Track = Track.ANY, backend: str | None = None) -> set[str]:
    return {finding.rule for finding in list_findings(text, track, backend)}


def list_rejecting_rules(text: str, track: Track = Track.ANY, backend: str | None = None) -> set[str]:
    return {f.rule for f in list_findings(text, track, backend) if f.severity is Severity.REJECT}


@dataclass(frozen=True)
class Pair:
    wrong: str
    right: str
    backend: str | None = None


ANY = {
    "imports-the-judge": Pair(
        "from pkb.judge import rank\nreturn x", "from pkb.triton_lib import exchange\nreturn exchange(1, 2, 3)"
    ),
    "reads-frames": Pair("return sys._getframe(1).f_locals['expected']", "return sys.getsizeof(x)"),
    "searches-memory": Pair("return [t for t in gc.get_objects() if t.shape == x.shape][0]", "gc.collect()\nreturn x"),
    "sets-hooks": Pair("signal.signal(signal.SIGUSR1, print)\nreturn x", "return torch.signal.windows.hann(8)"),
    "starts-processes": Pair("subprocess.Popen(['true'])\nreturn x", "return x.clone()"),
    "starts-threads": Pair("threading.Thread(target=print).start()\nreturn x", "with threading.Lock(): return x"),
    "ends-processes": Pair("os.kill(os.getppid(), 9)", "return os.getpid()"),
    "reaches-the-interpreter": Pair(
        "ctypes.pythonapi.Py_DecRef(x)", "return ctypes.CDLL('libcuda.so.1').cuLaunchKernel(1)"
    ),
    "pokes-memory": Pair("ctypes.memmove(x.data_ptr(), y.data_ptr(), 4)", "return ctypes.c_void_p(x.data_ptr())"),
    "loads-libraries": Pair("return ctypes.CDLL('libc.so.6')", "return ctypes.CDLL('libcuda.so.1')"),
    "reads-proc": Pair("return open('/proc/self/mem').read()", "return open('table.txt').read()"),
    "moves-descriptors": Pair("os.dup2(1, 3)", "return os.cpu_count()"),
    "sets-environment": Pair("os.environ['NCCL_ALGO'] = 'Ring'\nreturn x", "return os.environ['RANK']"),
    "patches": Pair(
        "torch.cuda.Event.elapsed_time = lambda a, b: 0.0\nreturn x", "out = x.clone()\nout.tag = 1\nreturn out"
    ),
    "overrides-operators": Pair(
        "torch.library.Library('aten', 'IMPL')\nreturn x", "torch.library.Library('mine', 'DEF')\nreturn x"
    ),
    "wraps-tensors": Pair(
        "class Lazy(torch.Tensor): pass\nreturn x.as_subclass(Lazy)",
        "class Plan: tensor = None\nreturn torch.Tensor.clone(x)",
    ),
    "watches-the-clock": Pair(
        "time.sleep(1)\nreturn x", "import time\nimport torch\ndef solution(x): return x\nprint(time.time())"
    ),
    "waits-on-the-host": Pair("torch.cuda.synchronize()\nreturn x", "torch.cuda.current_stream()\nreturn x"),
    "other-streams": Pair(
        "with torch.cuda.stream(torch.cuda.Stream()): return x.clone()", "torch.cuda.current_stream()\nreturn x"
    ),
    "replays-graphs": Pair("g = torch.cuda.CUDAGraph()\ng.replay()\nreturn x", "return torch.cuda.is_available()"),
    "pins-the-cache": Pair(
        CUDA % "cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20);",
        CUDA % "cudaDeviceSetLimit(other, 1 << 20);",
    ),
    "keys-by-address": Pair(
        "CACHE = {}\ndef solution(x):\n    key = (x.shape, x.data_ptr())\n    return CACHE.get(key)\n",
        "CACHE = {}\ndef solution(x):\n    return CACHE[x.shape, x.dtype](x.data_ptr())\n",
    ),
    "caches-tensors": Pair(
        "from functools import cache\n@cache\ndef work(x): return x + 1\ndef solution(x): return work(x)\n",
        "from functools import cache\n@cache\ndef plan(n): return n + 1\ndef solution(x): return x + plan(x.numel())\n",
    ),
    "returns-kept-results": Pair(
        "KEPT = {}\ndef solution(x):\n    out = KEPT[x.shape]\n    return out\n",
        "KEPT = {}\ndef solution(x):\n    buffer = KEPT[x.shape]\n    return buffer.clone()\n",
    ),
    "keeps-state-in-functions": Pair(
        "def solution(x, memory=[]):\n    return x + len(memory)\n",
        "def solution(x, dims=(0, 1)):\n    return x.sum(dims)\n",
    ),
    "loads-code": Pair("sys.path.append('/somewhere')\nimport helper\nreturn helper.f(x)", "return len(sys.argv)"),
    "uses-the-network": Pair(
        "import urllib.request as u\nreturn u.urlopen('http://x')", "import urllib.parse as u\nreturn u.quote('x')"
    ),
    "loads-results": Pair("return torch.load('answer.pt')", "return torch.full_like(x, 1)"),
    "touches-files": Pair(
        "return open('table.txt').read()", "import torch\nTABLE = open('t.txt').read()\ndef solution(x): return x"
    ),
    "unpickles": Pair("return pickle.loads(bytes(x))", "return pickle.dumps(3)"),
    "lowers-precision": Pair(
        "torch.backends.cuda.matmul.allow_tf32 = True\nreturn x @ y", "return torch.backends.cuda.matmul.allow_tf32"
    ),
    "narrows-values": Pair("return x.to(torch.float16).float()", "return x.to(torch.float32)"),
    "changes-settings": Pair("torch.manual_seed(0)\nreturn x", "return torch.get_default_dtype()"),
    "ends-the-process-group": Pair("dist.destroy_process_group()\nreturn x", "return dist.is_initialized()"),
    "makes-process-groups": Pair(
        "return dist.new_group([0, 1])",
        "from functools import cache\nimport torch.distributed as dist\n"
        "@cache\ndef pair(): return dist.new_group([0, 1])\ndef solution(x): dist.all_reduce(x, group=pair())\n",
    ),
    "falls-back": Pair(
        "try:\n    x.custom()\nexcept ValueError:\n    dist.all_reduce(x)\nreturn x",
        "try:\n    import triton\nexcept ImportError:\n    triton = None\ndist.all_reduce(x)\nreturn x",
    ),
    "swallows-errors": Pair(
        "try:\n    x.custom()\nexcept Exception:\n    pass\nreturn x",
        "try:\n    x.custom()\nexcept Exception:\n    raise ValueError(x.shape)\nreturn x",
    ),
    "never-launched": Pair(
        KERNEL + "def solution(x):\n    return x.sum()\n",
        KERNEL + "def solution(x):\n    kernel[(1,)](x, 4)\n    return x\n",
    ),
    "no-kernel": Pair(
        "import triton\ndef solution(x):\n    return x\n",
        "import triton\nfrom pkb.triton_lib import copy_tiles\ndef solution(x):\n    copy_tiles[(1,)](x, x, 1, 1)\n",
        "triton",
    ),
    "runs-text": Pair("exec(x.program)", "exec('z = 1')\nreturn z"),
    "computes-names": Pair("return getattr(torch, y)(x)", "return getattr(x, y)"),
    "decodes-text": Pair("import base64\nreturn base64.b64decode('aGk=')", "import base64\nreturn base64.b64encode(y)"),
    "hides-its-source": Pair("return load_inline('name', cuda_sources=y)", CUDA % ""),
    "assembles-its-source": Pair(
        "return load_inline('name', cuda_sources='void f() {}'.replace('f', y))",
        "FLAGS = ['-O3']\nreturn load_inline('name', cuda_sources=['void f' + '() {}'], extra_cuda_cflags=FLAGS)",
    ),
    "runs-programs": Pair(CUDA % 'system("true");', CUDA % 'printf("system");'),
}
SCRATCH = {
    "library-collective": Pair(
        "dist.all_reduce(x)\nreturn x", "return symm_mem.rendezvous(x, dist.group.WORLD).barrier()"
    ),
    "vendor-gemm": Pair(
        "return x.mm(y)", KERNEL.replace("0.0", "tl.dot(x, x)") + "def solution(x): kernel[(1,)](x, 4)\n"
    ),
    "looks-up-functions": Pair(CUDA % "dlsym(nullptr, name);", CUDA % "sqrtf(2);"),
    "library-kernel": Pair("return torch.compile(print)(x)", "return torch.compiler.is_compiling()"),
    "host-exchange": Pair(
        "dist.barrier()\nreturn x",
        "from functools import cache\nimport torch.distributed as dist\n"
        "import torch.distributed._symmetric_memory as symm_mem\n"
        "@cache\ndef meet(n): dist.barrier(); return symm_mem.rendezvous(symm_mem.empty(n), dist.group.WORLD)\n"
        "def solution(x):\n    meet(x.numel()).barrier()\n    return x\n",
    ),
    "may-be-library": Pair("return [x][0].engine[0].mm(y)", "return module.sum(x, y)\nimport torch\n"),
}


def test_every_rule_has_a_pair() -> None:
    assert {*ANY, *SCRATCH, "unreadable"} == {*load_rules()}


@pytest.mark.parametrize("name", ANY)
def test_rule_in_both_tracks(name: str) -> None:
    pair = ANY[name]
    for track in Track:
        assert name in list_rules(pair.wrong, track, pair.backend)
        assert name not in list_rules(pair.right, track, pair.backend)


@pytest.mark.parametrize("name", SCRATCH)
def test_rule_of_the_scratch_track(name: str) -> None:
    pair = SCRATCH[name]
    assert name in list_rules(pair.wrong, Track.SCRATCH)
    assert name not in list_rules(pair.right, Track.SCRATCH)
    assert name not in list_rules(pair.wrong, Track.ANY)


def test_sources_that_cannot_be_read_are_rejected() -> None:
    assert list_rules("def solution(x): return " + "-" * 3000 + "x") == {"unreadable"}
    assert list_rules("def solution(x): return x\n" + "#" * (1 << 20)) == {"unreadable"}


def test_what_python_cannot_parse_is_left_to_the_loader() -> None:
    for broken in ("def solution(x:\n", "def solution(x): return x\n\0"):
        assert list_findings(broken) == []


ALL_REDUCE = (
    "f = dist.all_reduce\nf(x)",
    "from torch.distributed import all_reduce as quiet\nquiet(x)",
    "from torch.distributed import *\nall_reduce(x)",
    "import torch.distributed.distributed_c10d as c\nc.all_reduce(x)",
    "getattr(dist, 'all_' + 'reduce')(x)",
    "getattr(dist, 'all_' 'reduce')(x)",
    "part = 'reduce'\ngetattr(dist, f'all_{part}')(x)",
    "for name in ('barrier', 'all_reduce'): getattr(dist, name)(x)",
    "dist.__getattribute__('all_reduce')(x)",
    "dist.__dict__['all_reduce'](x)",
    "vars(dist)['all_reduce'](x)",
    "__import__('torch.distributed').distributed.all_reduce(x)",
    "import importlib\nimportlib.import_module('torch.' + 'distributed').all_reduce(x)",
    "sys.modules['torch.distributed'].all_reduce(x)",
    "F.torch.distributed.all_reduce(x)",
    "exec('dist.all_reduce(x)')",
    "exec(compile('dist.all' + '_reduce(x)', '', 'exec'))",
    "eval('dist.' + 'all_reduce')(x)",
    "exec('exec(\"dist.all_reduce(x)\")')",
    "__builtins__['exec']('dist.all_reduce(x)')",
    "for op in (dist.all_reduce,): op(x)",
    "functools.partial(dist.all_reduce, op=None)(x)",
    "(m := dist).all_reduce(x)",
    "a, b = torch, dist\nb.all_reduce(x)",
    "d = dist if x is None else torch\nd.all_reduce(x)",
    "torch.ops._c10d_functional.all_reduce(x, 'sum', '0')",
    "torch.ops.symm_mem.one_shot_all_reduce(x, 'sum', '0')",
    "symm_mem._fused_all_gather_matmul(x, [y], 0, '0')",
    "dist.group.WORLD.allreduce([x])",
    "y.allreduce([x])",
    "dist._functional_collectives.all_reduce(x, 'sum', '0')",
    "dist.all_gather_object([None], x)",
    "ctypes.CDLL('libnccl.so.2').whatever(x)",
    "torch.cuda.nccl.reduce([x])",
)


@pytest.mark.parametrize("body", ALL_REDUCE)
def test_a_collective_is_seen_under_another_name(body: str) -> None:
    assert list_rejecting_rules(body + "\nreturn x", Track.SCRATCH) & {"library-collective", "library-kernel"}


COMPUTED = (
    "getattr(dist, ''.join(['all', '_', 'reduce']))(x)",
    "name = 'ecuder_lla'[::-1]\ngetattr(torch.distributed, name)(x)",
    "import base64\ngetattr(dist, base64.b64decode(b'YWxsX3JlZHVjZQ==').decode())(x)",
    "getattr(dist, '%s_%s' % ('all', 'reduce'))(x)",
    "s = 'all_'\ns += 'reduce'\ngetattr(dist, s)(x)",
    "dist.__getattribute__('ALL_REDUCE'.lower())(x)",
    "dist.__dict__['ALL_REDUCE'.lower()](x)",
    "__import__('TORCH'.lower()).distributed.all_reduce(x)",
    "import importlib\nimportlib.import_module('TORCH.DISTRIBUTED'.lower()).all_reduce(x)",
    "sys.modules['TORCH'.lower()].distributed.all_reduce(x)",
    "find = getattr\nlist(map(find, [dist], ['all_reduce']))[0](x)",
    "(lambda d: d.all_reduce(x))(dist)",
    "[dist][0].all_reduce(x)",
    "import pkgutil\npkgutil.resolve_name('torch.distributed:all_' + 'reduce')(x)",
    "import string\nstring.Formatter().get_field('0.all_reduce', (dist,), {})[0](x)",
    "match dist:\n    case object(all_reduce=move): move(x)",
)


@pytest.mark.parametrize("body", COMPUTED)
def test_a_name_that_cannot_be_followed_is_rejected_where_it_matters(body: str) -> None:
    assert "computes-names" in list_rejecting_rules(body + "\nreturn x", Track.SCRATCH)
    assert list_rejecting_rules(body + "\nreturn x", Track.ANY) == set()
    assert "computes-names" in list_rules(body + "\nreturn x", Track.ANY)


def test_names_of_own_objects_may_be_computed() -> None:
    wrapper = "class W(torch.nn.Module):\n    def __getattr__(self, name): return super().__getattr__(name)\n"
    for code in (wrapper + "return W()", "return getattr(x, y)", "return globals()[y]"):
        assert list_findings(code, Track.SCRATCH) == []


@pytest.mark.parametrize(
    "code",
    [
        "import base64\nexec(base64.b64decode('eCArPSAx'))",
        "exec('x = 1'.replace('1', '2'))",
        "eval(compile('x' * 2, '', 'eval'))",
        "getattr(__builtins__, 'EXEC'.lower())('x = 1')",
        "__builtins__['EXEC'.lower()]('x = 1')",
    ],
)
def test_text_that_is_not_written_out_is_not_run(code: str) -> None:
    assert "runs-text" in list_rejecting_rules(code + "\nreturn x")


FORK = (
    "__import__('o' + 's').fork()",
    "__import__(name='os').fork()",
    "import importlib as i\ni.import_module(name='os').fork()",
    "getattr(__import__('os'), 'fo' + 'rk')()",
    "torch.os.fork()",
    "f = os.fork\nf()",
    "sys.modules['os'].fork()",
    "sys.modules.get('os').fork()",
    "from os import *\nfork()",
    "eval(\"__import__('os').fork()\")",
    "eval(compile(source=\"__import__('os').fork()\", filename='', mode='eval'))",
    "(lambda: __import__('os'))().fork()",
    "vars(os)['fork']()",
    "os.__dict__.get('fork')()",
    "print.__self__.eval('os.fork()')",
    "import builtins\nbuiltins.__dict__['exec']('os.fork()')",
    "class A:\n    m = os\nA.m.fork()",
    "def call(f): f()\ncall(os.fork)",
    "def module(): return os\nmodule().fork()",
    "for step in [os.fork]: step()",
    "class A:\n    def __init__(self): self.f = os.fork\nA().f()",
    "match x:\n    case _: os.fork()",
    "with open('x') as f, os.fork(): pass",
    "x[os.fork()] = 1",
    "del x[os.fork()]",
    "assert os.fork()",
    "async def f(): os.fork()\nf()",
)


@pytest.mark.parametrize("body", FORK)
def test_a_process_is_seen_under_another_name(body: str) -> None:
    assert "starts-processes" in list_rejecting_rules(body + "\nreturn x")


def test_own_operators_may_have_any_name() -> None:
    assert (
        list_findings("torch.backends.cuda.matmul.allow_tf32\nreturn torch.ops.mine.matmul(x, y)", Track.SCRATCH) == []
    )


PRODUCTS = (
    "x @ y",
    "x.clone().T.contiguous().matmul(y)",
    "torch.einsum('ij,jk->ik', x, y)",
    "F.linear(x, y)",
    "torch.nn.Linear(8, 8)(x)",
    "F.conv2d(x, y)",
    "F.scaled_dot_product_attention(x, x, x)",
    "torch.ops.aten.mm.default(x, y)",
    "torch._scaled_mm(x, y)",
    "torch.Tensor.__matmul__(x, y)",
    "getattr(x, 'm' + 'm')(y)",
    "x.__matmul__(y)",
    "[row @ y for row in x]",
    "(lambda a: a @ y)(x)",
    "__import__('ctypes').CDLL(name).cublasSgemm_v2(x, y)",
    "torch.ops.mkldnn._linear_pointwise(x, y, None, 'none', [], '')",
    "torch.linalg.solve_triangular(x, y, upper=False)",
    "torch.mkldnn_convolution(x, y, None, [0], [1], [1], 1)",
    "torch.fft.rfft(x)",
    "F.embedding_bag(y, x, per_sample_weights=x)",
    "torch.ops.aten.mm.default.redispatch(y, x, x)",
    "__import__('numpy').linalg.inv(y)",
)


@pytest.mark.parametrize("expression", PRODUCTS)
def test_a_product_is_seen_under_another_name(expression: str) -> None:
    assert "vendor-gemm" in list_rejecting_rules(f"return {expression}", Track.SCRATCH)
    assert not list_rejecting_rules(f"return {expression}", Track.ANY)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("library-collective", "ncclAllReduce(p, p, n, ncclFloat, ncclSum, comm, s);"),
        ("library-collective", "nvshmem_barrier_all();"),
        ("library-collective", "nccl\\\nAllReduce(p);"),
        ("vendor-gemm", "cublasSgemm(handle);"),
        ("vendor-gemm", "auto z = ::at /* hidden */ :: matmul(x, x);"),
        ("vendor-gemm", "auto z = x.mm(x);"),
        ("vendor-gemm", "auto z = at::cpu::mm(x, x);"),
        ("vendor-gemm", "cblas_sgemm(a, b, c);"),
        ("looks-up-functions", "auto call = dlsym(nullptr, name);"),
        ("looks-up-functions", "at::DynamicLibrary library(name);"),
        ("sets-hooks", "at::RecordFunctionGuard off(false);"),
        ("other-streams", "cudaStreamCreate(&s);"),
        ("reaches-the-interpreter", 'PyRun_SimpleString("1");'),
    ],
)
def test_cuda_sources_are_read_too(rule: str, code: str) -> None:
    assert rule in list_rules(CUDA % code, Track.SCRATCH)
    assert list_rules(CUDA % f"// {code.splitlines()[0]}\n", Track.SCRATCH) == set()
    assert list_rules(CUDA % f"/* {code.replace('*/', '').replace('/*', '')} */", Track.SCRATCH) == set()


def test_a_compiled_kernel_must_be_used() -> None:
    assert "never-launched" not in list_rules(CUDA % "")
    assert "never-launched" in list_rules((CUDA % "").replace("    module.run(x)\n", ""))
    assert "never-launched" not in list_rules(
        (CUDA % "").replace("    module.run(x)\n", "    f = module.run\n    f(x)\n")
    )


def test_lines_of_cuda_are_lines_of_the_file() -> None:
    text = CUDA % "cublasSgemm(h);"
    [finding] = [f for f in list_findings(text, Track.SCRATCH) if f.rule == "vendor-gemm"]
    assert "cublasSgemm" in text.splitlines()[finding.line - 1]


def test_comments_and_strings_are_not_code() -> None:
    assert (
        list_findings(
            '''"""torch.cuda.synchronize(); os.fork(); exec(x)"""
# dist.all_reduce(x); import pkb.judge; sys._getframe()
NOTE = "x @ y; subprocess.run('ls'); ncclAllReduce"

def solution(x):
    """Uses dist.all_reduce and torch.load('x')."""
    print("torch.manual_seed(0)", 'eval(x)')
    return x
''',
            Track.SCRATCH,
        )
        == []
    )


def test_only_code_that_can_be_reached_counts() -> None:
    text = """import torch.distributed as dist

def reference(x):
    dist.all_reduce(x)
    return x

def solution(x):
    return x
    dist.all_reduce(x)

if __name__ == "__main__":
    dist.init_process_group()
    reference(1)
"""
    assert list_findings(text, Track.SCRATCH) == []
    for reaching in ("OPS = [reference]", "class K:\n    f = reference", "@print\ndef g(): return reference"):
        assert list_rules(f"{text}\n{reaching}\n", Track.SCRATCH) >= {"library-collective"}
    through = text.replace("    return x\n    dist", "    return helper(x)\n    dist") + "\nhelper = reference\n"
    assert "library-collective" in list_rules(through, Track.SCRATCH)


def test_dead_code_cannot_be_revived_unseen() -> None:
    for trick in (
        "globals()['LIVE'] = True",
        "g = globals()\ng |= {'LIVE': True}",
        "setattr(sys.modules[__name__], 'LIVE', True)",
        "import candidate as c\nc.LIVE = 1",
    ):
        text = (
            f"import sys\nimport torch.distributed as dist\nLIVE = False\n{trick}\n"
            "def solution(x):\n    if LIVE: dist.all_reduce(x)\n"
        )
        assert list_rejecting_rules(text, Track.SCRATCH)


@pytest.mark.parametrize(
    "code",
    [
        "time.perf_counter = lambda: 0",
        "import torch.cuda as tc\ntc.synchronize = lambda: None",
        "E = torch.cuda.Event\nE.record = None",
        "setattr(torch.cuda, 'synchronize', None)",
        "from unittest.mock import patch\npatch('torch.cuda.synchronize').start()",
        "torch.__dict__['allclose'] = None",
        "import builtins\nbuiltins.len = None",
        "sys.stdout = None",
        "del torch.Generator",
        "type(torch.cuda.Event()).elapsed_time = None",
        "sys.modules['torch'] = None",
        "torch.nn.Module.forward = None",
        "torch.Tensor.sum = None",
        "type.__setattr__(torch.Tensor, 'sum', None)",
    ],
)
def test_patching_is_seen(code: str) -> None:
    assert "patches" in list_rejecting_rules(code + "\nreturn x")


LINES = 2000


@pytest.mark.parametrize(
    "line",
    [
        "x = x + x",
        "x{k} = x{k} + x{next}",
        "x0 = 'a'\nx{next} = x{k} + x{k}",
        "x{k} = [i * j for i in range(200) for j in range(200) if 0]",
        "exec('a{k}=1')",
        "def f{k}(x): return f{next}(x)",
        "x{k} = lambda a=x{next}: a(x{k})",
        "def f(a): return f(a, {k})",
    ],
)
def test_long_files_are_read_in_reasonable_time(line: str) -> None:
    text = "\n".join(line.format(k=k, next=k + 1) for k in range(LINES))
    assert list_findings(f"{text}\ndef solution(x): return x") == []


@pytest.mark.parametrize("step", [1, -1])
def test_chains_of_names_are_followed_to_their_end(step: int) -> None:
    links = [f"def f{k}(): return f{k + 1}()" for k in range(LINES)]
    text = "\n".join([*links, f"def f{LINES}(): return os", "def solution(x): return f0().fork()"][::step])
    assert "starts-processes" in list_rejecting_rules("import os\n" + text)


def test_joined_strings_stay_small() -> None:
    grown = "s0 = '" + "a" * 1000 + "'\n" + "\n".join(f"s{k + 1} = s{k} + s{k}" for k in range(40))
    assert "runs-text" in list_rejecting_rules(f"{grown}\ndef solution(x): exec(s40)\n")


def test_code_in_code_in_code_is_not_followed_for_ever() -> None:
    code = "os.fork()"
    for _ in range(8):
        code = f"exec({code!r})"
    assert "runs-text" in list_rejecting_rules(code + "\nreturn x")


def test_loops_of_names_end() -> None:
    assert list_findings("a = b = x\nwhile a:\n    a, b = b, a + 1\n    b += a\nreturn b") == []
    assert list_findings("def f(n): return g(n)\ndef g(n): return f(n)\ndef solution(x): return f(x)") == []
    grown = "s = 'all_'\nwhile y:\n    s = s + 'reduce'\nreturn getattr(dist, s)(x)"
    assert {"library-collective", "computes-names"} <= list_rejecting_rules(grown, Track.SCRATCH)


def test_a_finding_says_what_and_where() -> None:
    [finding] = [f for f in list_findings("y = 1\nos.fork()\nreturn x") if f.rule == "starts-processes"]
    assert (finding.what, finding.severity) == ("os.fork", "reject")
    assert finding.sentence == "os.fork starts another process"
    assert make_source("y = 1\nos.fork()\nreturn x").splitlines()[finding.line - 1].strip() == "os.fork()"


TABLES = {
    "dict of tuples": """KERNELS = {"float32": (kernel, 64)}

def solution(x):
    KERNELS[str(x.dtype)][0][(1,)](x, 4)
""",
    "loop over a list": """CONFIGS = [(kernel, 64)]

def solution(x):
    for one, block in CONFIGS:
        one[(1,)](x, block)
""",
    "tuple in a dict by its name": """PAIR = (kernel, 64)
TABLE = dict(fast=PAIR)

def solution(x):
    chosen = TABLE.get("fast")
    chosen[0][(1,)](x, 4)
""",
    "partial": """import functools
run = functools.partial(kernel.run, grid=(1,))

def solution(x):
    run(x, 4)
""",
    "wrapped": """tuned = triton.autotune([triton.Config({})], key=[])(kernel)

def solution(x):
    tuned[(1,)](x, 4)
""",
    "attribute of a class": """class Launcher:
    kernel = kernel

    def __call__(self, x):
        self.kernel[(1,)](x, 4)

LAUNCHER = Launcher()

def solution(x):
    LAUNCHER(x)
""",
    "argument": """def launch(chosen, x):
    chosen[(1,)](x, 4)

def solution(x):
    launch(kernel, x)
""",
    "attribute of an object": """class Launcher:
    def __init__(self, chosen):
        self.chosen = chosen

LAUNCHER = Launcher(kernel)

def solution(x):
    LAUNCHER.chosen[(1,)](x, 4)
""",
    "choice": """def solution(x):
    chosen = kernel if x.numel() > 4 else None
    chosen[(1,)](x, 4)
""",
    "closure": """def make():
    table = {0: kernel}

    def launch(x):
        table[0][(1,)](x, 4)

    return launch

LAUNCH = [make()]

def solution(x):
    LAUNCH[0](x)
""",
    "operator of torch": """@torch.library.custom_op("mine::run", mutates_args=("x",))
def run(x: torch.Tensor) -> None:
    kernel[(1,)](x, 4)

def solution(x):
    torch.ops.mine.run(x)
""",
    "operator of a library": """library = torch.library.Library("mine", "DEF")

def run(x):
    kernel[(1,)](x, 4)

library.define("run(Tensor(a!) x) -> ()")
library.impl("run", run, "CPU")

def solution(x):
    torch.ops.mine.run(x)
""",
    "single dispatch": """import functools

@functools.singledispatch
def run(x): ...

@run.register
def _(x: torch.Tensor):
    kernel[(1,)](x, 4)

def solution(x):
    run(x)
""",
    "registry with a method": """class Registry(dict):
    def add(self, name):
        return lambda function: self.setdefault(name, function)

REGISTRY = Registry()

@REGISTRY.add("fast")
def run(x):
    kernel[(1,)](x, 4)

def solution(x):
    REGISTRY["fast"](x)
""",
    "made from a table": """def body(x, n): ...

MADE = {name: triton.jit(function) for name, function in {"fast": body}.items()}

def solution(x):
    MADE["fast"][(1,)](x, 4)
""",
    "registry": """REGISTRY = []
REGISTRY.append(kernel)

def solution(x):
    REGISTRY[0][(1,)](x, 4)
""",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_kernel_may_be_launched_in_roundabout_ways(name: str) -> None:
    assert "no-kernel" not in list_rejecting_rules(KERNEL + TABLES[name], Track.SCRATCH, "triton")
    if name not in ("registry", "made from a table"):
        assert "never-launched" not in list_rules(KERNEL + TABLES[name], Track.SCRATCH, "triton")


CUTE = """import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def add(a: cute.Tensor, b: cute.Tensor, n: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0]
    if i < n:
        b[i] = cutlass.Float32(a[i]) + b[i].to(cutlass.BFloat16)

@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor):
    add(a, b, cute.size(b)).launch(grid=(1, 1, 1), block=(cute.size(b), 1, 1))

def solution(a):
    b = torch.ones_like(a)
    cute.compile(launch, from_dlpack(a), from_dlpack(b))(from_dlpack(a), from_dlpack(b))
    return b
"""


def test_a_kernel_in_cutes_language_is_ones_own_and_a_finished_one_of_cutlass_is_not() -> None:
    assert not list_rejecting_rules(CUTE, Track.SCRATCH, "torch")
    finished = "import cutlass\n\ndef solution(a, b):\n    return cutlass.op.Gemm(element=a.dtype).run(a, b)\n"
    assert "library-kernel" in list_rejecting_rules(finished, Track.SCRATCH, "torch")


def test_a_table_that_the_call_does_not_use_launches_nothing() -> None:
    unused = "KERNELS = {0: (kernel, 64)}\n\ndef solution(x):\n    return x\n"
    assert "no-kernel" in list_rejecting_rules(KERNEL + unused, Track.SCRATCH, "triton")
    assert "never-launched" in list_rules(KERNEL + unused, Track.SCRATCH, "triton")


def test_what_a_table_holds_is_read_like_what_is_called() -> None:
    hidden = """def meet(x):
    dist.all_gather_object([None], x)

STEPS = {"meet": (meet, 1)}

def solution(x):
    STEPS["meet"][0](x)
"""
    assert "host-exchange" in list_rules(HEAD + hidden, Track.SCRATCH)
