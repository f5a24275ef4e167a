"""Small helpers for tensors: their bytes, and a description in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

COMPARABLE = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
    *(torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz, torch.float8_e8m0fnu),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.bool),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
)
"""The dtypes that the judge can receive and compare. Quantised ones are not among them: a tensor of raw bytes has no
quantiser, and torch crashes on it."""


def view_bytes(tensor: Tensor) -> Tensor:
    """Return the bytes of a tensor, one row per element: NaN differs from itself as a number, but not as bits."""
    return settle_bits(tensor).contiguous().reshape(-1, 1).view(torch.uint8)


def settle_bits(tensor: Tensor) -> Tensor:
    """Return the tensor with its values in memory: a view by conj() or imag may hold others, and a bit that says so."""
    return tensor.detach().resolve_conj().resolve_neg()


def describe_tensor(name: str, tensor: Tensor, count: int = 4) -> str:
    """Return dtype, shape, the first values and the root mean square of a tensor in one line."""
    flat = tensor.detach().reshape(-1)
    values = ", ".join(_short(value) for value in flat[:count].tolist())
    more = ", ..." if flat.numel() > count else ""
    rms = f", rms {float(flat.double().square().mean().sqrt()):.4g}" if flat.numel() and _is_real(tensor) else ""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{name}: {dtype}{list(tensor.shape)} [{values}{more}]{rms}"


def _is_real(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def compute_on_one_thread() -> Iterator[None]:
    """Have torch wake no other threads for what this thread computes: for small tensors that takes most of the time."""
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(count)
