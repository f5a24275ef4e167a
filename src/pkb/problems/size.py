"""How large a problem is posed, on how many ranks and with what elements."""

from dataclasses import dataclass
from typing import Any

from pkb.errors import UsageError

ITEMSIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes per element, by the names of the dtypes in which problems can be posed."""
_DTYPE_ALIASES = {"fp32": "float32", "float": "float32", "f32": "float32", "bf16": "bfloat16"}
_DTYPE_ALIASES |= {"fp16": "float16", "half": "float16", "f16": "float16"}
"""How others call these dtypes."""


def find_dtype_name(text: str) -> str:
    """Return the name of a dtype that a user may have called bf16 or torch.bfloat16. Raises UsageError."""
    plain = text.strip().lower().removeprefix("torch.")
    name = _DTYPE_ALIASES.get(plain, plain)
    if name not in ITEMSIZES:
        raise UsageError(f"unknown dtype {text!r}; choose from {', '.join(ITEMSIZES)}, or fp32, bf16, fp16")
    return name


@dataclass(frozen=True)
class Size:
    """The rows and columns of a problem, or the name of a model's set of constants."""

    m: int = 0
    n: int = 0
    name: str = ""

    def describe(self) -> dict[str, Any]:
        """Return the size as records have it."""
        return {"size": self.name} if self.name else {"m": self.m, "n": self.n}

    def __str__(self) -> str:
        return f"size {self.name}" if self.name else f"M={self.m}, N={self.n}"


@dataclass(frozen=True)
class Dimensions:
    """The numbers that a problem's conditions and costs are computed from. A Case has them too, and draws inputs."""

    m: int
    n: int
    size: str
    world: int
    itemsize: int
    rank: int = 0
    trial: int = 0
