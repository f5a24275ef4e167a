"""Reference and kernel side by side, for prompts: only kernels that we ship, never the one that is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pkb.errors import UsageError
from pkb.problem import Problem
from pkb.registry import load

_HOMES = (Path(__file__).parents[1] / "solutions", Path(__file__).parents[3] / "solutions")
"""In an installed package, and in a checkout."""
_FEW = 3


@dataclass(frozen=True)
class Example:
    problem: Problem
    path: Path

    @property
    def kernel(self) -> str:
        return self.path.read_text()


def examples(names: Sequence[str], backend: str, asked: Problem, count: int) -> list[Example]:
    """The first `count` of the named problems' shipped kernels, without those that would give the answer away."""
    others = [p for p in map(load, names) if p.stem != asked.stem and p.shown() != asked.shown()]
    return [Example(problem, _shipped(problem, backend)) for problem in others[:count]]


def examples_named(text: str) -> int:
    """How many examples `--examples 0|1|few` asks for."""
    counts = {"0": 0, "1": 1, "few": _FEW}
    if text not in counts:
        raise UsageError(f"--examples takes {', '.join(counts)}, not {text!r}")
    return counts[text]


def _shipped(problem: Problem, backend: str) -> Path:
    file = Path(backend) / f"{problem.stem}_{backend}.py"
    found = next((home / file for home in _HOMES if (home / file).is_file()), None)
    if found is None:
        raise UsageError(f"there is no shipped kernel solutions/{file} to show; correct `examples` in the template")
    return found
