"""Reference and kernel side by side, for prompts: only kernels that we ship, never the one that is asked for."""

from dataclasses import dataclass
from pathlib import Path

from pkb.errors import UsageError
from pkb.generate.template import Template
from pkb.problems.problem import Problem
from pkb.problems.suite import Suite, load_problem

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


def examples(template: Template, backend: str, asked: Problem, count: int) -> list[Example]:
    """So many of the template's examples, without those that would give the answer away."""
    first = template.parts["one"] if count == 1 else []
    named = [_reference(name, template.parts["shelf"]) for name in [*first, *template.parts["examples"]]]
    others = [problem for problem in named if not _gives_away(problem, asked)]
    return [Example(problem, _shipped(problem, backend, template.parts["shelf"])) for problem in others[:count]]


def examples_named(text: str) -> int:
    """How many examples `--examples 0|1|few` asks for."""
    counts = {"0": 0, "1": 1, "few": _FEW}
    if text not in counts:
        raise UsageError(f"--examples takes {', '.join(counts)}, not {text!r}")
    return counts[text]


def _reference(name: str, shelf: str) -> Problem:
    tasks = next((home / shelf / "tasks" for home in _HOMES if (home / shelf / "tasks").is_dir()), None)
    return Suite(tasks).load(name) if tasks else load_problem(name)


def _gives_away(example: Problem, asked: Problem) -> bool:
    answers = [f"{stem}_" for stem in getattr(example.module, "ANSWERS", [])]
    return example.stem == asked.stem or example.shown() == asked.shown() or asked.stem.startswith(tuple(answers))


def _shipped(problem: Problem, backend: str, shelf: str) -> Path:
    file = Path(shelf) / backend / f"{problem.stem}_{backend}.py"
    found = next((home / file for home in _HOMES if (home / file).is_file()), None)
    if found is None:
        raise UsageError(f"there is no shipped kernel solutions/{file} to show; correct `examples` in the template")
    return found
