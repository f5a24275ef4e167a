"""A tensor in one line: shape, dtype, a few values, its scale."""

from torch import Tensor


def sample_line(name: str, tensor: Tensor, count: int = 4) -> str:
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
