"""One `.py` file with a `solution(...)` or a `ModelNew` that claims to replace the reference's."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkb.backends import Backend, backend_named, recognise
from pkb.errors import UsageError
from pkb.problems.problem import Problem


@dataclass(frozen=True)
class Candidate:
    name: str
    source: bytes
    backend: Backend

    @classmethod
    def read(cls, path: Path, backend: str | None = None) -> "Candidate":
        try:
            return cls.of(path.read_bytes(), path.stem, backend)
        except OSError as error:
            raise UsageError(f"cannot read the candidate {path}: {error.strerror}") from error

    @classmethod
    def of(cls, source: bytes, name: str = "candidate", backend: str | None = None) -> "Candidate":
        return cls(name, source, backend_named(backend) if backend else recognise(source))

    @classmethod
    def reference(cls, problem: Problem) -> "Candidate":
        """The problem's own: the candidate that must always be right."""
        return cls.of(problem.as_candidate().encode(), "reference", "torch")

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source).hexdigest()

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "backend": self.backend.name, "sha256": self.digest}
