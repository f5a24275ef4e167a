"""Inputs and weights under which a model's output depends on all that it should.

KernelBench draws positive inputs and initialises weights by default: biases drown the signal, scales are 1, shifts are
0, and a candidate can leave out much of the work unnoticed.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Normal:
    """The normal distribution of a weight: mean and standard deviation."""

    mean: float
    std: float


_BIAS = Normal(0.0, 0.5)
_SCALE = Normal(1.0, 0.5)
_FREE = Normal(0.0, 1.0)
_GAIN = math.sqrt(2)
"""The gain that keeps the size of a signal through layers with a ReLU."""
_TABLE = 1_000_003
"""Number of values that are drawn, and repeated in larger weights. It is prime, so that rows still differ."""
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


@dataclass(frozen=True)
class Weight:
    """One entry of a state dict, and its distribution."""

    name: str
    values: str
    """The name that decides the values: its own, or the first name of the same tensor."""
    shape: tuple[int, ...]
    how: Normal

    def draw(self, seed: int, device: torch.device | str) -> Tensor:
        """Draw values that depend only on the seed and the name, not on the order in which weights are drawn."""
        own = hashlib.sha256(f"{seed}:{self.values}".encode()).digest()
        generator = torch.Generator(device=device).manual_seed(int.from_bytes(own[:7], "big"))
        count = math.prod(self.shape)
        values = torch.randn(min(count, _TABLE), generator=generator, device=device)
        values = values.mul_(self.how.std).add_(self.how.mean)
        return (
            values.repeat(-(-count // _TABLE))[:count].view(self.shape) if count > _TABLE else values.view(self.shape)
        )

    def to_message(self) -> list[Any]:
        """Return the weight as a list for a message."""
        return [self.name, self.values, list(self.shape), self.how.mean, self.how.std]

    @classmethod
    def from_message(cls, message: Sequence[Any]) -> "Weight":
        name, values, shape, mean, std = message
        return cls(name, values, tuple(shape), Normal(mean, std))


def list_weights(model: nn.Module, special: Mapping[str, Normal]) -> list[Weight]:
    """Return the parameters of a model, a shared one under each of its names. Buffers keep their values."""
    first: dict[Tensor, Weight] = {}
    found = []
    for path, module in model.named_modules():
        for short, tensor in module.named_parameters(recurse=False):
            name = f"{path}.{short}".lstrip(".")
            how = _find_special(name, special) or _find_default(module, short, tensor)
            one = first.setdefault(tensor, Weight(name, name, tuple(tensor.shape), how))
            found.append(replace(one, name=name))
    return found


def fill_weights(model: nn.Module, drawn: Sequence[Weight], seed: int) -> None:
    """Set the model's weights. Raises ValueError if the model has none of that name and shape."""
    state = model.state_dict()
    for weight in drawn:
        own = state.get(weight.name)
        if own is None or tuple(own.shape) != weight.shape:
            found = "is missing" if own is None else f"has shape {list(own.shape)}"
            raise ValueError(
                f"the weight {weight.name}, of shape {list(weight.shape)} in the reference, {found} in the model; "
                "take sizes from the constructor's arguments"
            )
        own.copy_(weight.draw(seed, own.device))


def find_held_shapes(model: nn.Module) -> dict[str, list[int]]:
    """Return the shapes of all tensors that a model holds, by name: its state, and plain attributes."""
    plain = {
        f"{path}.{name}".lstrip("."): value
        for path, module in model.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, Tensor)
    }
    return {name: list(tensor.shape) for name, tensor in (plain | model.state_dict()).items()}


def _find_special(name: str, special: Mapping[str, Normal]) -> Normal | None:
    return next((how for pattern, how in special.items() if fnmatch(name, pattern)), None)


def _find_default(module: nn.Module, name: str, tensor: Tensor) -> Normal:
    if "bias" in name and tensor.ndim == 1:
        return _BIAS
    if isinstance(module, _NORMS):
        return _SCALE
    if isinstance(module, nn.Embedding) or max(tensor.shape, default=1) == tensor.numel():
        return _FREE
    into = tensor.shape[0] if _is_transposed(module) else tensor[0].numel()
    return Normal(0.0, _GAIN / math.sqrt(into))


def _is_transposed(module: nn.Module) -> bool:
    return isinstance(module, nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d)


@contextmanager
def draw_signed() -> Iterator[None]:
    """Draw normal values for the duration of the context whenever a file calls torch.rand."""

    def normal(*size: Any, **options: Any) -> Tensor:
        return torch.randn(*size, **options)

    # When a device is first chosen by a context, torch notes which functions obey it: that must be the real rand.
    with torch.device("cpu"):
        torch.empty(0)
    with patch.object(torch, "rand", normal):
        yield
