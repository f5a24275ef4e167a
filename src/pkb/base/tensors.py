"""Small helpers for tensors: their bytes, and a description in one line."""

import torch
from torch import Tensor


def view_bytes(tensor: Tensor) -> Tensor:
    """Return the bytes of a tensor, one row per element: NaN differs from itself as a number, but not as bits."""
    return tensor.detach().contiguous().reshape(-1, 1).view(torch.uint8)


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
