"""How large a problem is posed."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Size:
    """Rows and columns; of a model, the name of a set of constants."""

    m: int = 0
    n: int = 0
    name: str = ""

    def facts(self) -> dict[str, Any]:
        """As records have it."""
        return {"size": self.name} if self.name else {"m": self.m, "n": self.n}

    def __str__(self) -> str:
        return f"size {self.name}" if self.name else f"M={self.m}, N={self.n}"
