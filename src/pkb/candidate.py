"""One `.py` file with a `solution(...)` or a `ModelNew` that claims to replace the reference."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pkb.backends import Backend, find_backend, recognise
from pkb.base.foreign_files import SOURCE_BYTES, describe_error, read_named_file
from pkb.errors import UsageError
from pkb.problems.problem import Problem
from pkb.record import CandidateFacts


@dataclass(frozen=True)
class Candidate:
    name: str
    source: bytes
    backend: Backend

    @classmethod
    def read(cls, path: Path, backend: str | None = None) -> "Candidate":
        try:
            return cls.of(read_named_file(path, SOURCE_BYTES), path.stem, backend)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"cannot read the candidate {path}: {describe_error(error)}; name a Python file"
            ) from error

    @classmethod
    def of(cls, source: bytes, name: str = "candidate", backend: str | None = None) -> "Candidate":
        return cls(name, source, find_backend(backend) if backend else recognise(source))

    @classmethod
    def reference(cls, problem: Problem) -> "Candidate":
        """Return the problem's reference as a candidate, which the judge must always accept."""
        return cls.of(problem.make_candidate_source().encode(), "reference", "torch")

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source).hexdigest()

    def describe(self) -> CandidateFacts:
        """Return what a record says about the candidate."""
        return CandidateFacts(self.name, self.backend.name, self.digest)
