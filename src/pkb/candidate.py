"""One `.py` file with a `solution(...)` or a `ModelNew` that claims to replace the reference."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pkb.backends import Backend, find_backend, recognise
from pkb.base.foreign_files import SOURCE_BYTES, describe_error, read_named_file
from pkb.base.printable import clean_line
from pkb.errors import UsageError
from pkb.problems.problem import Problem
from pkb.record import CandidateFacts


@dataclass(frozen=True)
class Candidate:
    """One file, or one source, that is to be judged. Make it with `Candidate.read(path)` or `Candidate.of(source)`."""

    name: str
    source: bytes
    backend: Backend

    def __repr__(self) -> str:
        return f"<Candidate {clean_line(self.name)}: {self.backend.name}, {len(self.source)} bytes>"

    @classmethod
    def read(cls, path: Path, backend: str | None = None) -> "Candidate":
        """Return the candidate in a file; without a backend, it is recognised. Raises UsageError."""
        try:
            return cls.of(read_named_file(path, SOURCE_BYTES), path.stem, backend)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"cannot read the candidate {path}: {describe_error(error)}; name a Python file"
            ) from error

    @classmethod
    def of(cls, source: bytes, name: str = "candidate", backend: str | None = None) -> "Candidate":
        """Return the candidate with this source; without a backend, it is recognised."""
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
