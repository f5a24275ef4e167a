"""Examples for prompts: a reference and its kernel, only from shipped kernels, and never the one that is asked for."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pkb.base.paths import list_solution_folders
from pkb.errors import UsageError
from pkb.generate.template import Template
from pkb.problems.problem import Problem
from pkb.problems.suite import Suite, load_problem

_FEW = 3


@dataclass(frozen=True)
class Example:
    problem: Problem
    path: Path

    @property
    def kernel(self) -> str:
        return self.path.read_text(encoding="utf-8")


def choose_examples(template: Template, backend: str, asked: Problem, count: int) -> list[Example]:
    """Return the first `count` examples of the template, without those that would give the answer away."""
    folder = template.parts["examples_folder"]
    first = template.parts["single_example"] if count == 1 else []
    named = [_load_reference(name, folder) for name in [*first, *template.parts["examples"]]]
    others = [problem for problem in named if not _is_answer_to(problem, asked)]
    return [Example(problem, _find_kernel(problem, backend, folder)) for problem in others[:count]]


def parse_example_count(text: str) -> int:
    """Return how many examples `--examples 0|1|few` asks for."""
    counts = {"0": 0, "1": 1, "few": _FEW}
    if text not in counts:
        raise UsageError(f"--examples takes {', '.join(counts)}, not {text!r}")
    return counts[text]


@cache
def _load_reference(name: str, folder: str) -> Problem:
    homes = list_solution_folders()
    tasks = next((home / folder / "tasks" for home in homes if (home / folder / "tasks").is_dir()), None)
    return Suite(tasks).load(name) if tasks else load_problem(name)


def _is_answer_to(example: Problem, asked: Problem) -> bool:
    answers = [f"{stem}_" for stem in getattr(example.module, "ANSWERS", [])]
    return (
        example.stem == asked.stem
        or example.show_source() == asked.show_source()
        or asked.stem.startswith(tuple(answers))
    )


def _find_kernel(problem: Problem, backend: str, folder: str) -> Path:
    file = Path(folder) / backend / f"{problem.stem}_{backend}.py"
    found = next((home / file for home in list_solution_folders() if (home / file).is_file()), None)
    if found is None:
        raise UsageError(f"there is no shipped kernel solutions/{file} to show; correct `examples` in the template")
    return found
