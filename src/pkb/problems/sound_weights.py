"""Inputs and weights under which a model's output depends on all that it should.

Published ones are positive inputs and default initialisation: biases drown the signal, scales are 1, shifts are 0, and
much can be left out unnoticed.
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
    """How a weight is drawn: mean and standard deviation."""

    mean: float
    std: float


_BIAS = Normal(0.0, 0.5)
_SCALE = Normal(1.0, 0.5)
_FREE = Normal(0.0, 1.0)
_GAIN = math.sqrt(2)
"""Keeps the size of a signal through layers with a ReLU."""
_TABLE = 1_000_003
"""So many values are drawn, and repeated in larger weights: a prime, so that rows differ all the same."""
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


@dataclass(frozen=True)
class Weight:
    """One entry of a state dict, and how it is drawn."""

    name: str
    values: str
    """Whose values it takes: its own, or those of another name for the same tensor."""
    shape: tuple[int, ...]
    how: Normal

    def drawn(self, seed: int, device: torch.device | str) -> Tensor:
        """The same values for the same seed and name, in whatever order weights are drawn."""
        own = hashlib.sha256(f"{seed}:{self.values}".encode()).digest()
        generator = torch.Generator(device=device).manual_seed(int.from_bytes(own[:7], "big"))
        count = math.prod(self.shape)
        values = torch.randn(min(count, _TABLE), generator=generator, device=device)
        values = values.mul_(self.how.std).add_(self.how.mean)
        return (
            values.repeat(-(-count // _TABLE))[:count].view(self.shape) if count > _TABLE else values.view(self.shape)
        )

    def told(self) -> list[Any]:
        """As a message has it."""
        return [self.name, self.values, list(self.shape), self.how.mean, self.how.std]

    @classmethod
    def heard(cls, told: Sequence[Any]) -> "Weight":
        name, values, shape, mean, std = told
        return cls(name, values, tuple(shape), Normal(mean, std))


def weights(model: nn.Module, special: Mapping[str, Normal]) -> list[Weight]:
    """The parameters of a model, a shared one by each of its names. Buffers stay as their constructor made them."""
    first: dict[Tensor, Weight] = {}
    found = []
    for path, module in model.named_modules():
        for short, tensor in module.named_parameters(recurse=False):
            name = f"{path}.{short}".lstrip(".")
            how = _special(name, special) or _usual(module, short, tensor)
            one = first.setdefault(tensor, Weight(name, name, tuple(tensor.shape), how))
            found.append(replace(one, name=name))
    return found


def fill(model: nn.Module, drawn: Sequence[Weight], seed: int) -> None:
    """Give the model's weights their values. Raises where it has none of that name and shape."""
    state = model.state_dict()
    for weight in drawn:
        own = state.get(weight.name)
        if own is None or tuple(own.shape) != weight.shape:
            found = "is missing" if own is None else f"has shape {list(own.shape)}"
            raise ValueError(
                f"the weight {weight.name}, of shape {list(weight.shape)} in the reference, {found} in the model; "
                "take sizes from the constructor's arguments"
            )
        own.copy_(weight.drawn(seed, own.device))


def held_by(model: nn.Module) -> dict[str, list[int]]:
    """Shapes of all tensors that a model keeps, by name: its state, and plain attributes."""
    plain = {
        f"{path}.{name}".lstrip("."): value
        for path, module in model.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, Tensor)
    }
    return {name: list(tensor.shape) for name, tensor in (plain | model.state_dict()).items()}


def _special(name: str, special: Mapping[str, Normal]) -> Normal | None:
    return next((how for pattern, how in special.items() if fnmatch(name, pattern)), None)


def _usual(module: nn.Module, name: str, tensor: Tensor) -> Normal:
    if "bias" in name and tensor.ndim == 1:
        return _BIAS
    if isinstance(module, _NORMS):
        return _SCALE
    if isinstance(module, nn.Embedding) or max(tensor.shape, default=1) == tensor.numel():
        return _FREE
    into = tensor.shape[0] if _transposed(module) else tensor[0].numel()
    return Normal(0.0, _GAIN / math.sqrt(into))


def _transposed(module: nn.Module) -> bool:
    return isinstance(module, nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d)


@contextmanager
def signed() -> Iterator[None]:
    """Where a published file draws from [0, 1), draw normal values."""

    def normal(*size: Any, **options: Any) -> Tensor:
        return torch.randn(*size, **options)

    # When a device is first chosen by a context, torch notes which functions obey it: let that be its own rand.
    with torch.device("cpu"):
        torch.empty(0)
    with patch.object(torch, "rand", normal):
        yield
