"""The work that a kernel written from scratch must do itself: communication, and products of matrices."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from pkb.screen.facts import Facts, Hit, is_under
from pkb.screen.reader import Use
from pkb.screen.rule import SCRATCH, Spot, rule
from pkb.screen.values import SOME_TENSOR

_MOVES = (
    *("*all_reduce*", "*allreduce*", "*all_gather*", "*allgather*", "*reduce_scatter*", "*all_to_all*", "*alltoall*"),
    *("broadcast*", "reduce", "reduce_*", "scatter*", "gather*", "send*", "recv*", "isend*", "irecv*"),
    *("batch_isend_irecv", "P2POp", "*tile_reduce", "multimem_*", "*matmul*", "coalescing*", "ring_*"),
)
"""Patterns for parts of names under torch.distributed that move data between ranks."""
_DISTRIBUTED = tuple(f"torch.distributed.{name}" for name in ("nn", "tensor", "_tensor", "fsdp"))
_OBJECTS = tuple(f"torch.distributed.{name}" for name in ("barrier", "monitored_barrier", "*_object", "*_object_list"))
"""Functions that exchange objects on the host: allowed for handles and barriers, not for tensors."""
_OPERATORS = ("aten", "prims", "inductor")
_PRODUCT_SPACES = ("mkl", "mkldnn", "onednn", "quantized", "sparse", "fbgemm", "xnnpack", "prepacked", "rnn")
"""Namespaces of torch.ops in which every operator is a vendor's."""
_PRIMITIVES = ("get_remote_tensor*", "memset32_", "stream_write_value32_")
_GROUP_METHODS = {
    *("allreduce", "allreduce_coalesced", "allgather", "_allgather_base", "allgather_into_tensor_coalesced"),
    *("reduce_scatter", "_reduce_scatter_base", "alltoall", "alltoall_base", "_all_gather_base"),
}
_PRODUCTS = {
    *("matmul", "mm", "bmm", "mv", "addmm", "addmv", "addbmm", "baddbmm", "sspaddmm", "dot", "vdot", "inner", "einsum"),
    *("tensordot", "chain_matmul", "multi_dot", "linear", "bilinear", "scaled_mm", "grouped_mm", "int_mm"),
    *("scaled_grouped_mm", "scaled_dot_product_attention", "multi_head_attention_forward", "cublas_dot_product"),
    *("addmm_activation", "sparse_mm", "smm", "hspmm", "rmatmul", "imatmul", "Linear", "LazyLinear", "Bilinear"),
    *("MultiheadAttention", "scaled_dot_product_flash_attention", "scaled_dot_product_efficient_attention"),
    *("scaled_dot_product_cudnn_attention", "flex_attention", "conv1d", "conv2d", "conv3d", "conv_transpose1d"),
    *("conv_transpose2d", "conv_transpose3d", "conv_tbc", "convolution", "cudnn_convolution", "Conv1d", "Conv2d"),
    *("Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LSTM", "GRU", "RNN", "mkldnn_convolution"),
    *(
        "mkldnn_linear",
        "vecdot",
        "cdist",
        "pdist",
        "embedding_bag",
        "EmbeddingBag",
        "c_einsum",
        "convolve",
        "correlate",
    ),
    *("triangular_solve", "cholesky", "cholesky_solve", "cholesky_inverse", "inverse", "pinverse", "det", "logdet"),
    *("slogdet", "svd", "qr", "geqrf", "ormqr", "orgqr", "lu", "lu_solve", "matrix_exp", "matrix_power", "cov"),
    *("corrcoef", "stft", "istft", "matvec", "vecmat", "redispatch", "op_dk", "call_boxed"),
}
_LOCAL = {
    *("norm", "vector_norm", "matrix_norm", "cross", "diagonal", "vander", "fftshift", "ifftshift", "fftfreq"),
    *("rfftfreq", "outer", "trace"),
}
"""Functions of torch.linalg, torch.fft and their models in numpy that reduce, index or compute element by element."""
_LANGUAGE = (
    *("cutlass.cute", "cutlass.utils", "cutlass.pipeline", "cutlass.torch", "cutlass.range*", "cutlass.const_expr"),
    *("cutlass.Constexpr", "cutlass.dynamic_expr", "cutlass.Boolean", "cutlass.Numeric", "cutlass.*[nt][0-9]*"),
    *("cupy.RawKernel", "cupy.RawModule"),
)
"""What these libraries have for writing kernels oneself: CuTe's language in Python and its types, such as Float32."""
_UNMISTAKABLE = {"matmul", "mm", "bmm", "addmm", "addmv", "baddbmm", "addbmm", "mv", "einsum"} | _GROUP_METHODS
_LIBRARIES = (
    *("apex", "cublas", "cudnn", "cupy", "cutlass", "cuda.cccl", "deep_ep", "deep_gemm", "deepspeed", "fla"),
    *("flash_attn", "flashinfer", "iris", "jax", "kernels", "kraken", "liger_kernel", "mpi4py", "mscclpp", "nccl"),
    *("nvshmem", "nvmath", "symm_mem_recipes", "tensorflow", "torchao", "transformer_engine", "triton_dist"),
    *("triton_kernels", "vllm", "sgl_kernel", "xformers", "torch.compile", "torch.jit.script", "torch.jit.trace"),
    *("torch.cuda.nccl", "torch.cuda.comm", "torch.nn.parallel"),
)


@rule("move the data yourself: symmetric memory, its pointers and signals are allowed", reject=SCRATCH)
def library_collective(facts: Facts) -> Iterator[Spot]:
    """is communication by a library"""
    yield from (use for use in facts.find_uses("torch.distributed", "torch.ops", "torch._C") if is_collective(use.name))
    yield from (use for use in facts.find_uses("torch.Tensor.*") if use.name.rpartition(".")[2] in _GROUP_METHODS)
    yield from (use for use in facts.find_uses(*_OBJECTS, hot=True) if _has_tensor_arguments(facts, use))
    yield from facts.find_identifiers(
        "nccl", "nccl[A-Z]*", "pnccl[A-Z]*", "nvshmem*", "MPI_*", "lnccl*", "lnvshmem*", "lmpi*"
    )
    yield from facts.find_identifiers(*(f".{name}" for name in _GROUP_METHODS), "c10d::ProcessGroup*")
    yield from _find_shared_libraries(facts, ("*nccl*", "*nvshmem*", "*libmpi*", "*MPI_*", "mpi"))


def is_collective(name: str) -> bool:
    """Return whether a full name is of something in torch that moves data between ranks."""
    if is_under(name, _OBJECTS):
        return False
    if is_under(name, ("torch.ops.symm_mem.*", "torch.ops.*c10d*.*", *_DISTRIBUTED)):
        return not any(fnmatchcase(part, p) for part in name.split(".")[3:] for p in _PRIMITIVES)
    if is_under(name, ("torch.distributed", "torch._C._distributed_c10d")):
        parts = name.split(".")[2:]
        return any(fnmatchcase(part.lstrip("_"), pattern) for part in parts for pattern in _MOVES)
    return False


def _has_tensor_arguments(facts: Facts, use: Use) -> bool:
    return any(SOME_TENSOR in facts.resolve(arg, use.scope) for arg in (use.call.args if use.call else []))


@rule("multiply in your own kernel: tl.dot, mma or plain loops", reject=SCRATCH)
def vendor_gemm(facts: Facts) -> Iterator[Spot]:
    """is a product by a library"""
    kernels = facts.kernels
    for use in facts.find_uses("torch", "numpy", "operator"):
        if use.function not in kernels and is_product(use.name) and not _is_weight_layer(use):
            yield use if use.name != "operator.matmul" else Hit(use.line, "the operator @")
    yield from facts.find_identifiers(
        *("cublas*", "cudnn*", "cutlass*", "cute::gemm", "cusparse*", "cusolver*", "lcublas*", "cblas_*", "LAPACKE_*"),
        *("dnnl*", "*sgemm_*", "*dgemm_*", "mkl_*", "aoti_torch_*mm*", "aoti_torch_*conv*", "at::redispatch::*"),
        *("*callBoxed*", "at::cpu::*mm*", "at::cuda::*mm*", "lopenblas*", "lmkl*", "lblas*"),
    )
    owners = ("at", "torch", "at::native", "torch::nn::functional", "at::cuda::blas", "F", "at::cpu", "at::_ops")
    yield from facts.find_identifiers(
        *(f"{owner}::{name}*" for owner in owners for name in (*_PRODUCTS, "gemm", "bgemm"))
    )
    yield from facts.find_identifiers(*(f".{name}" for name in _UNMISTAKABLE - _GROUP_METHODS))
    yield from _find_shared_libraries(
        facts, ("*cublas*", "*cudnn*", "*cutlass*", "*openblas*", "*mkl*", "*libblas*", "*blis*", "*dnnl*", "*gemm*")
    )


def _is_weight_layer(use: Use) -> bool:
    """Return whether a model's constructor makes a layer here, which the judge sees when it is called."""
    return getattr(use.function, "name", "") == "__init__" and is_under(use.name, ("torch.nn.[A-Z]*",))


def is_product(name: str) -> bool:
    """Return whether a full name is of something in torch or numpy that multiplies matrices."""
    parts = [part.strip("_").removesuffix("()") for part in name.split(".")]
    space = parts[2] if parts[:2] == ["torch", "ops"] and len(parts) > 2 else "aten"
    own_operator = space not in (*_OPERATORS, *_PRODUCT_SPACES)
    if parts[0] not in ("torch", "numpy", "operator") or parts[1:2] == ["backends"] or own_operator:
        return False
    if parts[1:2] in (["linalg"], ["fft"]):
        return len(parts) > 2 and parts[2] not in _LOCAL
    if space in _PRODUCT_SPACES:
        return len(parts) > 3
    return any(part in _PRODUCTS for part in parts[1:])


@rule("declare the functions that you call, so that the linker finds them", reject=SCRATCH)
def looks_up_functions(facts: Facts) -> Iterator[Hit]:
    """looks a native function up by a name that the screen may not see"""
    yield from facts.find_identifiers("*dlsym", "*dlvsym", "*dlopen*", "*dlmopen", "dl_iterate_phdr", "*DynamicLibrary")


@rule("write the kernel in this file", reject=SCRATCH)
def library_kernel(facts: Facts) -> Iterator[Spot]:
    """is a kernel that others wrote, or generate"""
    yield from (use for use in facts.find_uses(*_LIBRARIES) if not is_under(use.name, _LANGUAGE))


@rule("exchange handles once, under a cache; synchronise calls with signals on the device", warn=SCRATCH)
def host_exchange(facts: Facts) -> Iterator[Spot]:
    """meets the other ranks on the host in every call"""
    yield from facts.find_uses(*_OBJECTS, hot=True, setup=False)


@rule("give it another name, or call it on something the screen can follow", warn=SCRATCH)
def may_be_library(facts: Facts) -> Iterator[Spot]:
    """may be a library's method: its owner is unknown"""
    kernels = facts.kernels
    for use in facts.find_uses(*(f"[?].{name}" for name in _UNMISTAKABLE), hot=True):
        if use.call and use.function not in kernels:
            yield use


def _find_shared_libraries(facts: Facts, patterns: tuple[str, ...]) -> Iterator[Use]:
    """Yield the shared libraries whose files, or whose called functions, match a pattern."""
    for use in facts.find_uses("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "ctypes.util.find_library", "cffi"):
        texts = [use.name, *map(str, facts.find_arguments(use))]
        if any(fnmatchcase(text, pattern) for text in texts for pattern in patterns):
            yield use
